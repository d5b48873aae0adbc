#!/usr/bin/env python3
"""Loads a checkpoint the way a PyTorch user would: python3 check_checkpoint.py FILE

Both torch.load(weights_only=True) and the memory-mapped form must work and agree. Prints one line per leaf: path, then
dtype, shape and sum of a tensor, or the value.
"""
import sys

import torch


def leaves(x, path=()):
    if isinstance(x, dict):
        for key, item in x.items():
            yield from leaves(item, (*path, str(key)))
    else:
        yield ".".join(path), x


def shown(x):
    if isinstance(x, torch.Tensor):
        return f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)} sum {x.double().sum().item():.17g}"
    return repr(x)


def main(file):
    loaded, mapped = (list(leaves(torch.load(file, weights_only=True, mmap=m))) for m in (False, True))
    lines = [f"{path}: {shown(x)}" for path, x in loaded]
    if lines != [f"{path}: {shown(x)}" for path, x in mapped]:
        sys.exit(f"{file}: read and memory-mapped, torch.load gives different things")
    print("\n".join(lines))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
