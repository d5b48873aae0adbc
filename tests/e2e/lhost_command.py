"""Runs lhost for the Python tests. They are started with the build folder as their last argument."""
import json
import pathlib
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop()).resolve() if len(sys.argv) > 1 else None
SOURCE = pathlib.Path(__file__).resolve().parents[2]
TRAINING = SOURCE / "tests" / "golden" / "training"


def run(folder, manifest, *arguments):
    """A run in `folder` (made new). Gives its run folder and the content of its result.json."""
    command = [BUILD / "bin" / "lhost", "run", manifest, f"run.dir={folder}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    run_folder, = pathlib.Path(folder).glob("*/version_0")
    return run_folder, json.loads((run_folder / "result.json").read_text())


def records(run_folder):
    """What the jsonl logger wrote."""
    return [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]


def main():
    if not BUILD:
        sys.exit("usage: python3 TEST.py BUILD_FOLDER")
    unittest.main(verbosity=2)
