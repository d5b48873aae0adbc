#!/usr/bin/env python3
"""Makes the golden training runs beside this script: python3 make.py (PyTorch 2.11).

20 optimizer steps of each model on the digits of configs/data, in the order of the file, in both precisions:
  MODEL.json              for each case the settings for lhost on top of MODEL.toml, and the loss of each step
  MODEL-DTYPE-initial.pt  the weights all cases start from: a state_dict
  MODEL-DTYPE-final.pt    the state_dict after the last step of each case, by the case's name
"""
import gzip
import itertools
import json
import pathlib
import re

import torch
from torch import nn
from torch.optim import lr_scheduler

HERE = pathlib.Path(__file__).parent
DATA = HERE.parents[2] / "configs" / "data"
STEPS = 20
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
SGD = {"use": "sgd", "lr": 0.05, "momentum": 0.9}
ADAMW = {"use": "adamw", "lr": 1e-3, "weight_decay": 0.01}

# One entry is one run: tables of an lhost manifest. train() below reads the same keys.
CASES = {
    "sgd_momentum": {"optimizer": SGD},
    "sgd_nesterov_decay": {"optimizer": {**SGD, "nesterov": True, "weight_decay": 0.01}},
    "adam": {"optimizer": {"use": "adam", "lr": 1e-3, "weight_decay": 0.01}},
    "adamw": {"optimizer": ADAMW},
    # the mlp's gradients have norms on both sides of the limit, the convnet's are all above it
    "sgd_clip_norm": {"optimizer": SGD, "trainer": {"gradient_clip_val": 0.25}},
    "adamw_clip_norm": {"optimizer": ADAMW, "trainer": {"gradient_clip_val": 0.25}},
    "sgd_clip_value": {"optimizer": SGD,
                       "trainer": {"gradient_clip_val": 0.01, "gradient_clip_algorithm": "value"}},
    "sgd_accumulate": {"optimizer": SGD, "trainer": {"accumulate_grad_batches": 3}},
    # 7 batches of 200 and one of 37 make an epoch: windows of 600, 600 and 237 samples
    "adamw_accumulate_uneven": {"optimizer": ADAMW, "trainer": {"accumulate_grad_batches": 3},
                                "data": {"batch_size": 200}},
    "adamw_cosine_warmup": {"optimizer": ADAMW, "scheduler": {"use": "cosine", "interval": "step", "warmup": 4}},
    "sgd_step_by_epoch": {"optimizer": SGD, "trainer": {"limit_train_batches": 5},
                          "scheduler": {"use": "step", "step_size": 1, "gamma": 0.5}},
    "adamw_groups": {"optimizer": {**ADAMW, "weight_decay": 0.1,
                                   "group": [{"match": "bias$", "weight_decay": 0.0},
                                             {"match": "0\\.weight$", "lr": 3e-4}]}},
}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 10))

    def forward(self, x):
        return self.net(x.flatten(1))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()

        def block(inputs, width):
            convolution = nn.Conv2d(inputs, width, 3, padding=1, bias=False)
            return convolution, nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)

        self.features = nn.Sequential(*block(1, 4), *block(4, 8), nn.AdaptiveAvgPool2d(2))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.0), nn.Linear(8 * 2 * 2, 10))

    def forward(self, x):
        return self.head(self.features(x.unsqueeze(1)))


def idx(name):
    """A file of unsigned bytes in the format of the MNIST pages."""
    raw = gzip.decompress((DATA / name).read_bytes())
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return torch.frombuffer(bytearray(raw[4 + 4 * raw[3]:]), dtype=torch.uint8).reshape(shape)


def digits(part):
    return idx(f"digits-{part}-images.idx3-ubyte.gz") / 16, idx(f"digits-{part}-labels.idx1-ubyte.gz").long()


def make_optimizer(model, use, group=(), **options):
    """A parameter belongs to the first group whose regular expression is found in its name."""
    parts = [{"params": [], **{k: v for k, v in g.items() if k != "match"}} for g in group]
    rest = []
    for name, parameter in model.named_parameters():
        place = next((i for i, g in enumerate(group) if re.search(g["match"], name)), None)
        (rest if place is None else parts[place]["params"]).append(parameter)
    return OPTIMIZERS[use]([{"params": rest}, *parts], **options)


def make_scheduler(optimizer, use, interval="epoch", warmup=0, **options):
    if use == "step":
        return lr_scheduler.StepLR(optimizer, **options), interval
    rise = lr_scheduler.LinearLR(optimizer, 1 / (warmup + 1), 1, warmup)
    fall = lr_scheduler.CosineAnnealingLR(optimizer, STEPS - warmup)
    return lr_scheduler.SequentialLR(optimizer, [rise, fall], [warmup]), interval


def windows(samples, batch_size=32, accumulate_grad_batches=1, limit_train_batches=None, **_):
    """One epoch: lists of slices, each list the batches of one optimizer step."""
    batches = [slice(i, min(i + batch_size, samples)) for i in range(0, samples, batch_size)]
    batches = batches[:limit_train_batches]
    return [batches[i:i + accumulate_grad_batches] for i in range(0, len(batches), accumulate_grad_batches)]


def train(model, images, labels, optimizer, trainer={}, data={}, scheduler=None, steps=STEPS):
    """The loop a PyTorch user writes. Gives the loss of each step, of its last batch as in lhost's records, and the
    optimizer."""
    optimizer = make_optimizer(model, **optimizer)
    schedule, interval = make_scheduler(optimizer, **scheduler) if scheduler else (None, None)
    losses = []
    while True:
        for window in windows(len(images), **trainer, **data):
            rows = sum(batch.stop - batch.start for batch in window)
            for batch in window:
                loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
                (loss * (batch.stop - batch.start) / rows).backward()
            if limit := trainer.get("gradient_clip_val"):
                by_value = trainer.get("gradient_clip_algorithm") == "value"
                clip = nn.utils.clip_grad_value_ if by_value else nn.utils.clip_grad_norm_
                clip(model.parameters(), limit)
            optimizer.step()
            optimizer.zero_grad()
            if interval == "step":
                schedule.step()
            losses.append(loss.item())
            if len(losses) == steps:
                return losses, optimizer
        if interval == "epoch":
            schedule.step()


def toml(tables):
    """Settings as the text of a manifest. The JSON of our values is also their TOML."""
    lines = []
    for table, keys in tables.items():
        lines.append(f"[{table}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items() if key != "group"]
        for group in keys.get("group", []):
            lines += [f"[[{table}.group]]", *(f"{key} = {json.dumps(value)}" for key, value in group.items())]
    return "\n".join(lines)


def require_different(final):
    """A setting without an effect would test nothing: each case must end at weights of its own."""
    weights = {case: torch.cat([v.double().flatten() for v in state.values() if v.is_floating_point()])
               for case, state in final.items()}
    for a, b in itertools.combinations(weights, 2):
        distance = ((weights[a] - weights[b]).abs().max() / weights[b].abs().max()).item()
        assert distance > 1e-4, f"{a} and {b} end at the same weights: {distance}"


def make(name, model_class, dtypes=(torch.float32, torch.float64)):
    images, labels = digits("train")
    torch.manual_seed(7)
    initial = model_class().state_dict()
    cases = {case: {"settings": toml(tables)} for case, tables in CASES.items()}
    for dtype in dtypes:
        key, final = str(dtype).removeprefix("torch."), {}
        start = {k: v.to(dtype) if v.is_floating_point() else v for k, v in initial.items()}
        torch.save(start, HERE / f"{name}-{key}-initial.pt")
        for case, tables in CASES.items():
            model = model_class().to(dtype)
            model.load_state_dict(start)
            cases[case][key], _ = train(model, images.to(dtype), labels, **tables)
            final[case] = model.state_dict()
        require_different(final)
        torch.save(final, HERE / f"{name}-{key}-final.pt")
    lines = (f"{json.dumps(case)}: " + json.dumps(content).replace(', "float', ',\n "float')
             for case, content in cases.items())
    (HERE / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    make("mlp", Mlp)
    make("convnet", ConvNet)
