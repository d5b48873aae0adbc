#!/usr/bin/env python3
"""Compares lhost with a hand-written LibTorch loop, a PyTorch loop and Lightning. README.md says how to read the result.

    driver.py [--build build/release] [--python <Python with torch and lightning>] [--short] [C2 C3 ...]

All programs of a row are started once and wait; one at a time makes a slice of steps, in the order A B C C B A, so that
start-up is never measured and a slow moment of the machine meets all of them. A second lhost in each row tells the
noise. Before any timing each program makes 100 steps, and those whose loss differs are left out.
"""
import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ranks import RankRows

HERE = Path(__file__).resolve().parent
DATA = HERE.parent.parent / "configs" / "data"
FILES = [str(DATA / f"digits-train-{what}-ubyte.gz") for what in ("images.idx3", "labels.idx1")]
EPOCH = 44  # steps in one pass over the digits; slices are whole passes
CHECKED_STEPS, SAME = 100, 1e-4  # relative: float32, 100 steps
NOISY = 0.10  # wider A/A bands than this make no claim


class Program:
    """A child that makes steps when told to (pace.hpp)."""

    def __init__(self, name, argv, folder, env):
        self.name, self.log = name, open(folder / (name.replace(" ", "-").replace("/", "-") + ".log"), "wb+")
        self.started = time.monotonic()
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=env,
                                      cwd=folder)
        self.slice = EPOCH

    def ask(self, steps):
        self.child.stdin.write(b"%d\n" % steps)
        self.child.stdin.flush()

    def answer(self):
        line = self.child.stdout.readline()
        if not line:
            self.log.seek(0)
            sys.exit(f"{self.name} ended early:\n" + self.log.read().decode(errors="replace")[-3000:])
        answer = json.loads(line)
        pages = int(Path(f"/proc/{self.child.pid}/statm").read_text().split()[1])
        answer["rss"] = pages * os.sysconf("SC_PAGE_SIZE")
        answer["since_exec"] = time.monotonic() - self.started
        return answer

    def run(self, steps):
        self.ask(steps)
        return self.answer()

    def end(self):
        self.child.stdin.close()
        try:
            self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Bench(RankRows):
    def __init__(self, arguments, folder):
        self.build, self.python, self.short = Path(arguments.build).resolve(), arguments.python, arguments.short
        self.folder, self.out = folder, open(arguments.json, "a")
        self.env = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="",
                        PYTHONDONTWRITEBYTECODE="1", XDG_CACHE_HOME=str(folder / "cache"))
        self.missing = {p for p in ("torch", "lightning", "tensorboard") if not self.has(p)}

    def has(self, package):
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{package}') is None)"
        return subprocess.run([self.python, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 0

    def write(self, **record):
        self.out.write(json.dumps(record) + "\n")
        self.out.flush()

    # --- the programs

    def fixture(self, name):
        return f'plugin = "{self.build}/tests/fixtures/bench/{name}.so"\n'

    def lhost(self, name, *overrides, tables="", loggers=""):
        manifest = self.folder / (name.replace(" ", "-") + ".toml")
        manifest.write_text(f'extends = "{HERE}/step.toml"\ncheckpoint = []\n' + ("" if loggers else "logger = []\n") +
                            f'[run]\nname = "bench"\ndir = "{self.folder}/runs"\n[trainer]\nmax_steps = -1\n'
                            f'max_epochs = -1\n[[callback]]\n{self.fixture("bench.pace")}{tables}{loggers}')
        argv = [str(self.build / "bin/lhost"), "run", "-q", str(manifest), *overrides]
        return name, argv, ()

    def lhost_adamw(self, name, *overrides, **more):
        return self.lhost(name, 'optimizer={use="adamw", lr=1e-3, weight_decay=0.01}', *overrides, **more)

    def mock(self, name, hooks):
        manifest = self.folder / (name.replace(" ", "-") + "-mock.toml")
        manifest.write_text(f'extends = "{HERE}/mock.toml"\n[run]\ndir = "{self.folder}/runs"\n[trainer]\nmax_steps = -1\n'
                            f'max_epochs = -1\n[[callback]]\n{self.fixture("bench.pace")}' +
                            "".join(f'[[callback]]\n{self.fixture("bench.hooked")}name = "c{i}"\n' for i in range(hooks)))
        return name, [str(self.build / "tests/bench/mock_run"), str(manifest)], ()

    def raw(self, kind="fused"):
        return f"LibTorch loop, {kind}", [str(self.build / "tests/bench/raw_loop"), *FILES, "pace", "0", kind], ()

    def torch(self, optimizer, kind):
        return f"PyTorch loop, {kind}", [self.python, str(HERE / "peers/torch_loop.py"), *FILES, optimizer, kind], ("torch",)

    def lightning(self, name, optimizer, kind, mode, scalars=0):
        argv = [self.python, str(HERE / "peers/lightning_loop.py"), *FILES, optimizer, kind, mode, str(scalars),
                str(self.folder / "lightning")]
        return name, argv, ("torch", "lightning") + (("tensorboard",) if scalars else ())

    def available(self, makers):
        kept = []
        for name, argv, needs in makers:
            lacking = sorted(self.missing.intersection(needs))
            if lacking:
                print(f"  skipped: {name}: {self.python} has no {', '.join(lacking)} (pip install {' '.join(lacking)})")
            else:
                kept.append((name, argv))
        return kept

    def start(self, name, argv):
        return Program(name, argv, self.folder, self.env)

    # --- the measurement

    def measure(self, row, makers):
        """Slices of all programs in turn: name -> [(seconds a step by CPU, by wall) for each round]."""
        begun = time.monotonic()
        programs = [self.start(*m) for m in self.available(makers)]
        try:
            programs = self.check(row, programs)
            times = {p.name: [] for p in programs}
            seconds = (time.monotonic() - begun) + (25 if self.short else 120)
            rounds = 0
            while rounds < 3 or (time.monotonic() - begun < seconds and rounds < 40):
                visits = {p.name: [] for p in programs}
                for p in programs + programs[::-1]:
                    a = p.run(p.slice)
                    self.write(row=row, round=rounds, program=p.name, steps=p.slice, **a)
                    visits[p.name].append((a["cpu"] / p.slice, a["wall"] / p.slice))
                for name, (one, two) in visits.items():
                    times[name].append(((one[0] + two[0]) / 2, (one[1] + two[1]) / 2))
                rounds += 1
            return times
        finally:
            for p in programs:
                p.end()

    def check(self, row, programs):
        for p in programs:
            p.ask(CHECKED_STEPS)
        kept = []
        expected = None
        for p in programs:
            loss = p.answer()["loss"]
            expected = loss if expected is None else expected
            if not abs(loss - expected) <= SAME * abs(expected):
                print(f"  left out: {p.name}: its loss after {CHECKED_STEPS} steps is {loss}, lhost's is {expected}")
                p.end()
                continue
            kept.append(p)
        for p in kept:  # slices of about 0.3 s of CPU
            per_step = p.run(2 * EPOCH)["cpu"] / (2 * EPOCH)
            p.slice = EPOCH * max(1, round(0.3 / per_step / EPOCH))
        self.write(row=row, losses_agree=[p.name for p in kept], loss=expected, load=os.getloadavg())
        return kept

    def ratios(self, row, times, pairs):
        """Prints time of a / time of b, the noise first."""
        for name, rounds in times.items():
            print(f"  {1 / statistics.median(r[0] for r in rounds):9.0f} steps a CPU second   {name}")
        if "lhost again" in times:
            pairs = [("lhost again", "lhost")] + pairs
        for a, b in pairs:
            if a not in times or b not in times:
                continue
            texts = []
            for clock, i in (("cpu", 0), ("wall", 1)):
                low, middle, high = band([x[i] / y[i] for x, y in zip(times[a], times[b])])
                noisy = a == "lhost again" and (high - low) / middle > NOISY
                texts.append(f"{clock} {middle:6.3f} [{low:.3f}, {high:.3f}]" + (" too noisy" if noisy else ""))
                self.write(row=row, ratio=[a, b], clock=clock, median=middle, p10=low, p90=high,
                           rounds=len(times[a]), too_noisy=noisy)
            title = "A/A noise" if a == "lhost again" else f"{a} / {b}"
            print(f"  {title:52} {'   '.join(texts)}")

    # --- the rows

    def c2(self, row="C2", optimizer="adamw"):
        """Time of a step against the peers, AdamW."""
        own = self.lhost_adamw if optimizer == "adamw" else self.lhost
        makers = [own("lhost"), own("lhost again"),
                  own("lhost, csv logger", "trainer.log_every_n_steps=50", loggers='[[logger]]\nuse = "csv"\n')]
        if optimizer == "sgd":
            makers += [self.raw("fused"), self.raw("torch")]
        makers += [self.torch(optimizer, "fused"), self.torch(optimizer, "default"),
                   self.lightning("Lightning barebones", optimizer, "fused", "barebones"),
                   self.lightning("Lightning default", optimizer, "default", "default")]
        times = self.measure(row, makers)
        self.ratios(row, times, [(m[0], "lhost") for m in makers[3:]] + [("Lightning default", "lhost, csv logger")])

    def c2_sgd(self):
        """The same with SGD and momentum, the LibTorch loop of C1 among the peers."""
        self.c2("C2-sgd", "sgd")

    def c3(self):
        """What a declared hook costs: 8 and 64 callbacks with one, on the mock engine's tiny step."""
        makers = [self.mock("lhost", 0), self.mock("lhost again", 0), self.mock("lhost, 8 hooks", 8),
                  self.mock("lhost, 64 hooks", 64)]
        times = self.measure("C3", makers)
        self.ratios("C3", times, [(m[0], "lhost") for m in makers[2:]])
        low, middle, high = band([(a[0] - b[0]) / 64 * 1e9 for a, b in zip(times["lhost, 64 hooks"], times["lhost"])])
        print(f"  a declared hook costs {middle:.1f} ns of CPU [{low:.1f}, {high:.1f}]")
        self.write(row="C3", hook_ns=middle, p10=low, p90=high)

    def c4(self):
        """8 scalars logged in every step to CSV and TensorBoard, against none."""
        def model(n):
            return f'model={{plugin="{self.build}/tests/fixtures/bench/bench.log.so", scalars={n}}}'
        both = '[[logger]]\nuse = "csv"\n[[logger]]\nuse = "tensorboard"\n'
        makers = [self.lhost("lhost", model(0)), self.lhost("lhost again", model(0)),
                  self.lhost("lhost, 8 scalars", model(8), "trainer.log_every_n_steps=1", loggers=both),
                  self.lightning("Lightning", "sgd", "default", "default"),
                  self.lightning("Lightning, 8 scalars", "sgd", "default", "default", 8)]
        times = self.measure("C4", makers)
        self.ratios("C4", times, [("lhost, 8 scalars", "lhost"), ("Lightning, 8 scalars", "Lightning"),
                                  ("Lightning, 8 scalars", "lhost, 8 scalars")])

    def once(self, row, steps, rounds, key, unit):
        """Fresh programs, one slice each: the value of `key` after it."""
        makers = self.available([self.lhost("lhost"), self.lhost("lhost again"), self.raw(), self.torch("sgd", "default"),
                                 self.lightning("Lightning default", "sgd", "default", "default")])
        self.start(*makers[0]).end()  # warms the page cache, describes the plugins
        values = {name: [] for name, _ in makers}
        for i in range(rounds):
            for name, argv in makers if i % 2 == 0 else makers[::-1]:
                p = self.start(name, argv)
                a = p.run(steps)
                p.end()
                self.write(row=row, round=i, program=name, steps=steps, **a)
                values[name].append((key(a), a["since_exec"]))
        for name, v in values.items():
            low, middle, high = band([x[0] for x in v])
            print(f"  {middle:8.3f} {unit} [{low:.3f}, {high:.3f}]   {name}")
        for name in values:
            if name == "lhost":
                continue
            low, middle, high = band([a[0] / b[0] for a, b in zip(values[name], values["lhost"])])
            noisy = name == "lhost again" and (high - low) / middle > NOISY
            title = "A/A noise" if name == "lhost again" else f"{name} / lhost"
            print(f"  {title:52} {middle:6.3f} [{low:.3f}, {high:.3f}]" + (" too noisy" if noisy else ""))
            self.write(row=row, ratio=[name, "lhost"], median=middle, p10=low, p90=high, rounds=rounds, too_noisy=noisy)

    def c12(self):
        """Start: CPU time from exec to the end of the first step, files cached."""
        self.once("C12", 1, 3 if self.short else 9, lambda a: a["cpu_total"], "CPU s")

    def c13(self):
        """Memory: resident MiB after 1 000 steps."""
        self.once("C13", 1000, 1 if self.short else 3, lambda a: a["rss"] / 2**20, "MiB")

    ROWS = {"C2": c2, "C2-sgd": c2_sgd, "C3": c3, "C4": c4, "C12": c12, "C13": c13,
            "C12-ranks": RankRows.c12_ranks, "C15": RankRows.c15}


def band(values):
    """The 10th percentile, the median, the 90th percentile."""
    if len(values) == 1:
        return values * 3
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    return tenths[0], statistics.median(values), tenths[-1]


def versions(bench):
    lines = subprocess.run([str(bench.build / "bin/lhost"), "version"], capture_output=True, text=True, check=True).stdout
    site = subprocess.run([bench.python, "-c", "import sys; print('\\n'.join(sys.path))"], capture_output=True, text=True,
                          check=True).stdout.split()
    found = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions(path=site)}
    return {"lhost": lines.strip(), **{n: found.get(n) for n in ("torch", "lightning")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(Bench.ROWS)}; default: all")
    parser.add_argument("--build", default="build/release", help="build folder, with the target `bench` built")
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch and lightning")
    parser.add_argument("--short", action="store_true", help="at most 50 s a row on a quiet machine")
    parser.add_argument("--json", help="file to append all slices to; default: <build>/tests/bench/driver.jsonl")
    arguments = parser.parse_args()
    arguments.json = arguments.json or str(Path(arguments.build) / "tests/bench/driver.jsonl")
    unknown = set(arguments.rows) - set(Bench.ROWS)
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(Bench.ROWS)}")
    if not (Path(arguments.build) / "tests/fixtures/bench/bench.log.so").exists():
        parser.error(f"{arguments.build} lacks the benchmarks; cmake --build {arguments.build} --target bench builds them")
    with tempfile.TemporaryDirectory(prefix="lhost-bench-") as folder:
        bench = Bench(arguments, Path(folder))
        cpu = next(x.split(":")[1].strip() for x in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in x)
        machine = {"cpu": cpu, "cpus": os.cpu_count(), "kernel": platform.release(),
                   "time": time.strftime("%FT%TZ", time.gmtime())}
        print(f"{cpu}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, one thread for each program")
        bench.write(machine=machine, versions=versions(bench), short=bench.short)
        for row in arguments.rows or Bench.ROWS:
            begun = time.monotonic()
            print(f"{row}: {Bench.ROWS[row].__doc__}", flush=True)
            Bench.ROWS[row](bench)
            bench.write(row=row, seconds=time.monotonic() - begun, load_at_end=os.getloadavg())
            print(f"  ({time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f})", flush=True)


if __name__ == "__main__":
    main()
