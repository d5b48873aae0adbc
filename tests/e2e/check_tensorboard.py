"""Prints what TensorBoard's own reader finds in event files: "tag<TAB>step<TAB>value" a line, oldest first.

Usage: check_tensorboard.py FILE|DIR     needs the PyPI package tensorboard; exit 3 without it
A text summary is printed as Python's repr of its text.
"""
import os
import sys

try:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util import tensor_util
except ImportError as error:
    print(f"the package tensorboard is missing: {error}", file=sys.stderr)
    sys.exit(3)


def event_files(path):
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(path, name) for name in sorted(os.listdir(path)) if "tfevents" in name]


def values(path):
    for file in event_files(path):
        for event in EventFileLoader(file).Load():
            for value in event.summary.value:  # the loader turns simple_value into a tensor
                number = tensor_util.make_ndarray(value.tensor).item()
                yield value.tag, event.step, number.decode() if isinstance(number, bytes) else number


def main(path):
    for tag, step, value in values(path):
        print(tag, step, repr(value) if isinstance(value, str) else value, sep="\t")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
