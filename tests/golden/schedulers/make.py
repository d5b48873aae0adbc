#!/usr/bin/env python3
"""Writes schedules.txt: learning rates of torch.optim.lr_scheduler, made with torch 2.11 (not needed by the tests).

Each line: scheduler, its two parameters, base rate, ticks of the run, tick, the rate that PyTorch sets when it is
stepped tick by tick, and the rate of its closed form.
    step    step_size gamma
    cosine  t_max     eta_min
Usage: python make.py > schedules.txt
"""
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR

CASES = [
    ("step", 3, 0.5, 0.1, 20), ("step", 1, 0.9, 1.0, 50), ("step", 7, 0.1, 3e-4, 40), ("step", 100, 0.1, 0.1, 10),
    ("cosine", 20, 0.0, 0.1, 20), ("cosine", 399, 0.0, 1e-3, 399), ("cosine", 10, 1e-5, 3e-4, 45),
    ("cosine", 1, 0.01, 1.0, 6), ("cosine", 50, 0.2, 0.1, 50),
]

for kind, a, b, base, total in CASES:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=base)
    if kind == "step":
        scheduler = StepLR(optimizer, step_size=a, gamma=b)
    else:
        scheduler = CosineAnnealingLR(optimizer, T_max=a, eta_min=b)
    for t in range(total + 1):
        stepped, closed = scheduler.get_last_lr()[0], scheduler._get_closed_form_lr()[0]
        print(kind, a, repr(b), repr(base), total, t, repr(float(stepped)), repr(float(closed)))
        optimizer.step()
        scheduler.step()
