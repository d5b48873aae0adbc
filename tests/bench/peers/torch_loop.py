"""The loop that a PyTorch tutorial shows, paced by driver.py.
usage: torch_loop.py <images> <labels> <sgd|adamw> <fused|default>"""
import sys

import torch
from pace import Pace
from work import digits, net, optimizer, prepare

prepare()
batches, model = digits(sys.argv[1], sys.argv[2]), net()
step = optimizer(sys.argv[3], sys.argv[4] == "fused", model.parameters())
loss_of = torch.nn.functional.cross_entropy
pace = Pace()
running = pace.wait()
while running:
    for x, y in batches:
        step.zero_grad()
        loss = loss_of(model(x.flatten(1)), y)
        loss.backward()
        step.step()
        if pace.step():
            pace.answer(loss.item())
            running = pace.wait()
            if not running:
                break
