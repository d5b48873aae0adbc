"""The work of ../step.toml in PyTorch: the digits in their order, batches of 32, an MLP 64-128-10 made from seed 42."""
import gzip

import torch

BATCH = 32


def read_idx(path, header):
    with gzip.open(path) as f:
        return torch.frombuffer(bytearray(f.read()[header:]), dtype=torch.uint8)


def digits(images, labels):
    y = read_idx(labels, 8).long()
    x = read_idx(images, 16).reshape(len(y), 8, 8).float() * 0.0625
    return [(x[i:i + BATCH], y[i:i + BATCH]) for i in range(0, len(y) - BATCH + 1, BATCH)]


def net(sizes=(64, 128, 10)):
    torch.manual_seed(42)
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(i, o), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def convnet(widths, side=32, classes=10):
    """models/convnet, for rows of side x side pixels"""
    torch.manual_seed(42)
    layers, channels = [torch.nn.Unflatten(1, (1, side, side))], 1
    for width in widths:
        layers += [torch.nn.Conv2d(channels, width, 3, padding=1, bias=False), torch.nn.BatchNorm2d(width),
                   torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        channels = width
    layers += [torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Dropout(0.0),
               torch.nn.Linear(channels * 4, classes)]
    return torch.nn.Sequential(*layers)


def make(model):
    """mlp-64-128-10 or convnet-32-64"""
    kind, *numbers = model.split("-")
    return {"mlp": net, "convnet": convnet}[kind]([int(n) for n in numbers])


def optimizer(name, fused, params):
    kind = {"sgd": lambda **k: torch.optim.SGD(params, lr=0.1, momentum=0.9, **k),
            "adamw": lambda **k: torch.optim.AdamW(params, lr=1e-3, weight_decay=0.01, **k)}[name]
    return kind(fused=True) if fused else kind()


def prepare():
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
