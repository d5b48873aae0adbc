#!/usr/bin/env python3
"""Makes the golden checkpoints beside this script: python3 make.py (PyTorch 2.11, NumPy).

Each NAME.pt or NAME.ckpt gets a NAME.json: the leaves that a reader must find in it, in order, worked out here from
the Python objects. Tensors are given as their elements in row-major order; what has no counterpart is "unknown".
"""
import collections
import json
import math
import pathlib

import numpy
import torch
from torch import nn

HERE = pathlib.Path(__file__).parent


def number(x):
    """JSON has no infinities and NaN."""
    return x if not isinstance(x, float) or math.isfinite(x) else repr(x)


def leaves(x, path=()):
    """The same tree as lhost's leaves: a list of one plain type is one leaf, other lists are numbered."""
    if isinstance(x, torch.Tensor) and not x.is_complex():
        dtype = str(x.dtype).removeprefix("torch.")
        data = [number(v) for v in x.detach().double().flatten().tolist()]
        yield {"path": path, "kind": "tensor", "dtype": dtype, "shape": list(x.shape), "data": data}
    elif isinstance(x, dict):
        for key, item in x.items():
            yield from leaves(item, (*path, str(key)))
    elif isinstance(x, (list, tuple, set, torch.Size)):
        items = list(x)
        for plain in (int, float, str):
            if all(type(i) is plain for i in items):
                yield {"path": path, "kind": "list_" + plain.__name__, "value": [number(i) for i in items]}
                return
        for i, item in enumerate(items):
            yield from leaves(item, (*path, str(i)))
    elif x is None or type(x) in (bool, int, float, str) and not (type(x) is int and not -2**63 <= x < 2**63):
        yield {"path": path, "kind": type(x).__name__, "value": number(x)}
    else:
        yield {"path": path, "kind": "unknown"}


def save(name, x, **how):
    torch.save(x, HERE / name, **how)
    if how:
        return  # the leaves are the same in every protocol
    lines = ",\n".join(json.dumps(leaf) for leaf in leaves(x))
    (HERE / name).with_suffix(".json").write_text(f"[{lines}]\n" if lines else "[]\n")


def train(model, optimizer, scheduler, steps=2):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 2)).square().sum().backward()
        optimizer.step()
        scheduler.step()


def main():
    torch.manual_seed(0)
    save("state_dict.pt", nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).state_dict())

    model = nn.Linear(2, 1)
    adam = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.8, 0.99))
    decay = torch.optim.lr_scheduler.StepLR(adam, 1)
    train(model, adam, decay)
    save("training.pt", {"state_dict": model.state_dict(), "optimizer": adam.state_dict(), "epoch": 3, "best": 0.125})
    save("lightning.ckpt", {
        "epoch": 2, "global_step": 40, "pytorch-lightning_version": "2.5.0",
        "state_dict": model.state_dict(),
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"current": {"ready": 3, "completed": 2}}}},
        "callbacks": {"ModelCheckpoint{'monitor': 'val_loss'}": {
            "monitor": "val_loss", "best_model_score": torch.tensor(0.5), "best_model_path": "/a/b=1.ckpt",
            "kth_value": torch.tensor(0.75)}},
        "optimizer_states": [adam.state_dict()], "lr_schedulers": [decay.state_dict()],
        "hparams_name": "kwargs", "hyper_parameters": {"hidden": [128, 64], "lr": 0.01}})

    save("dtypes.pt", {
        str(d).removeprefix("torch."): torch.tensor([0, 1, 2, 3, 100], dtype=d)
        for d in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                  torch.int8, torch.uint8)
    } | {"bool": torch.tensor([True, False, True]), "empty": torch.zeros(0, 3), "scalar": torch.tensor(-1.5),
         "special": torch.tensor([math.inf, -math.inf, math.nan, 1e-45])})

    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    tied = nn.Linear(2, 2, bias=False)
    save("views.pt", {
        "embedding": tied.weight, "head": tied.weight, "base": base, "transposed": base.permute(2, 0, 1),
        "slice": base[1, :, 1:3], "every_second": base.flatten()[1::2], "expanded": torch.tensor([1.0, 2.0]).expand(3, 2),
        "offset": base[1]})

    shared = ["a", 1]
    values = {
        "none": None, "true": True, "false": False, "small": 255, "negative": -1, "large": 2**40, "largest": 2**63 - 1,
        "smallest": -2**63, "half": 0.5, "inf": math.inf, "nan": math.nan, "text": "grün \U0001f40d", "empty": "",
        "nothing": {}, "no_items": [], "ints": [1, -2, 2**40], "floats": [0.1, 1e300], "texts": ["x", "y"],
        "mixed": [1, 2.5, [3, 4], {"k": None}], "tuple": (0.9, 0.999), 7: "an int key", "size": torch.Size([2, 3]),
        "once": shared, "twice": shared, "default": collections.defaultdict(int, {"k": 1}),
        "counter": collections.Counter("aab"), "ordered": collections.OrderedDict(b=1, a=2)}
    save("values.pt", values)
    save("values5.pt", values, pickle_protocol=5)

    with_attribute = nn.Parameter(torch.tensor([1.0, 2.0]))
    with_attribute.note = "kept by torch.save"
    objects = {
        "before": 1, "huge": 2**63, "bytes": b"\x00\xff", "bytearray": bytearray(b"x"), "complex": 1 + 2j,
        "dtype": torch.float32, "device": torch.device("cpu"), "numpy_scalar": numpy.float64(0.5),
        "numpy_array": numpy.arange(3), "class": nn.Linear, "path": pathlib.PurePosixPath("/a"),
        "complex_tensor": torch.tensor([1 + 2j]), "set": {7}, "parameter": with_attribute, "after": 2}
    save("unknown.pt", objects)
    save("unknown5.pt", objects, pickle_protocol=5)

    torch.save({"a": torch.ones(2)}, HERE / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.script(nn.Linear(1, 1)), HERE / "torchscript.pt")
    torch.serialization.set_crc32_options(False)
    save("no_checksums.pt", {"a": torch.tensor([1.0, 2.0])})


if __name__ == "__main__":
    main()
