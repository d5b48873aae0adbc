"""The rows of driver.py with several ranks: C15 (steps) and C12-ranks (start). Each program is a tree of processes; rank
0 is paced through two named pipes, the other ranks wait for it in their collective."""
import gzip
import os
import random
import select
import signal
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS, SIDE = 8192, 32  # random images: what is learnt does not matter, that all programs learn the same does
# Models by the name that work.py knows them under, and their tables in a manifest.
MLP, CONVNET = "mlp-1024-1024-1024-10", "convnet-32-64"
MODELS = {MLP: f'use = "mlp"\ninputs = {SIDE * SIDE}\nhidden = [1024, 1024]\n',
          CONVNET: 'use = "convnet"\nwidths = [32, 64]\n'}
SAME, CHECKED_STEPS = 1e-4, 20
TICK = os.sysconf("SC_CLK_TCK")


def write_idx(path, header, data):
    with gzip.open(path, "wb", compresslevel=1) as f:
        f.write(struct.pack(f">{len(header)}I", *header) + data)


def make_data(folder):
    rng = random.Random(1)
    images, labels = folder / "images.idx3.gz", folder / "labels.idx1.gz"
    write_idx(images, (0x803, ROWS, SIDE, SIDE), rng.randbytes(ROWS * SIDE * SIDE))
    write_idx(labels, (0x801, ROWS), bytes(rng.randrange(10) for _ in range(ROWS)))
    return str(images), str(labels)


def cpu_of_tree(root):
    """CPU seconds of a process and all that descend from it, in ticks of 10 ms."""
    stats, children = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        stats[int(entry)] = int(fields[11]) + int(fields[12])
        children.setdefault(int(fields[1]), []).append(int(entry))
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        total += stats.get(pid, 0)
        todo += children.get(pid, [])
    return total / TICK


class RankProgram:
    """A program of several processes, in a session of its own, that makes steps when told to."""

    def __init__(self, name, argv, folder, env):
        self.name, path = name, folder / ("pipe-" + name.replace(" ", "-").replace(",", "").replace("/", "-"))
        self.slice, self.log = 1, open(f"{path}.log", "wb+")
        for end in ("in", "out"):
            Path(f"{path}.{end}").unlink(missing_ok=True)
            os.mkfifo(f"{path}.{end}")
        self.questions, self.answers = os.open(f"{path}.in", os.O_RDWR), os.open(f"{path}.out", os.O_RDWR)
        self.started = time.monotonic()
        self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=folder,
                                      env=dict(env, BENCH_PIPE=str(path)), start_new_session=True)

    def run(self, steps):
        before, begun = cpu_of_tree(self.child.pid), time.monotonic()
        os.write(self.questions, b"%d\n" % steps)
        text = b""
        while not text.endswith(b"\n"):
            if select.select([self.answers], [], [], 1)[0]:
                text += os.read(self.answers, 4096)
            elif self.child.poll() is not None or time.monotonic() - begun > 300:
                self.log.seek(0)
                sys.exit(f"{self.name} gives no answer:\n" + self.log.read().decode(errors="replace")[-3000:])
        now = time.monotonic()
        loss = float(text.split(b'"loss":')[1].split(b"}")[0])
        wall = float(text.split(b'"wall":')[1].split(b",")[0])
        return {"wall": wall, "cpu": cpu_of_tree(self.child.pid) - before, "since_exec": now - self.started, "loss": loss}

    def end(self):
        os.close(self.questions)  # end of input: rank 0 stops
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.child.pid, signal.SIGKILL)  # ranks that still wait for rank 0
        except ProcessLookupError:
            pass
        self.child.wait()
        os.close(self.answers)


class RankRows:
    """What Bench of driver.py needs for these rows."""

    def data(self):
        if not hasattr(self, "idx"):
            self.idx = make_data(self.folder)
        return self.idx

    def lhost_ranks(self, name, model, batch, ranks, *overrides, strategy="ddp"):
        images, labels = self.data()
        manifest = self.folder / (name.replace(" ", "-").replace(",", "") + f"-{model}-{batch}.toml")
        manifest.write_text(f'checkpoint = []\nlogger = []\n'
                            f'[run]\nname = "bench"\ndir = "{self.folder}/runs-{manifest.stem}"\nseed = 42\n'
                            f'[trainer]\nmax_steps = -1\nmax_epochs = -1\ndevices = {ranks}\nthreads = 1\n'
                            f'num_sanity_val_steps = 0\nlog_every_n_steps = 0\n'
                            f'[model]\n{MODELS[model]}'
                            f'[data]\nuse = "idx"\ntrain = {{ images = "{images}", labels = "{labels}" }}\n'
                            f'scale = {1 / 256}\nbatch_size = {batch}\nshuffle = false\ndrop_last = true\n'
                            f'[optimizer]\nuse = "sgd"\nlr = 0.1\nmomentum = 0.9\n' +
                            (f'[strategy]\nuse = "{strategy}"\n' if ranks > 1 else "") +
                            f'[[callback]]\n{self.fixture("bench.pace")}')
        return name, [str(self.build / "bin/lhost"), "run", "-q", str(manifest), *overrides], ()

    def lightning_ranks(self, name, model, batch, ranks, mode="default", strategy="ddp"):
        argv = [self.python, str(HERE / "peers/lightning_ranks.py"), *self.data(), str(batch), model, mode, str(ranks), strategy if ranks > 1 else "auto",
                str(self.folder / "lightning")]
        return name, argv, ("torch", "lightning")

    def start_ranks(self, name, argv):
        return RankProgram(name, argv, self.folder, self.env)

    def c15(self):
        """Steps of an MLP 1024-1024-1024-10 and of the convnet 32-64 on 1 and 2 ranks of one thread, SGD."""
        for model, batch in ((MLP, 32), (MLP, 512), (CONVNET, 64)):
            print(f"  {model}, batch {batch} a rank", flush=True)
            makers = [self.lhost_ranks("lhost 1", model, batch, 1), self.lhost_ranks("lhost 2", model, batch, 2),
                      self.lhost_ranks("lhost 2 again", model, batch, 2),
                      self.lightning_ranks("Lightning 1", model, batch, 1),
                      self.lightning_ranks("Lightning 2", model, batch, 2),
                      self.lightning_ranks("Lightning tuned 1", model, batch, 1, "tuned"),
                      self.lightning_ranks("Lightning tuned 2", model, batch, 2, "tuned")]
            row = f"C15-{model}-{batch}"
            self.report_c15(row, self.measure_ranks(row, makers))

    def measure_ranks(self, row, makers):
        programs = []
        try:
            for m in self.available(makers):  # one after the other: starting is heavy
                programs.append(self.start_ranks(*m))
                programs[-1].first = programs[-1].run(CHECKED_STEPS)["loss"]
            expected = {p.name.rsplit(" ", 1)[-1]: p.first for p in programs[1::-1]}  # of lhost on 1 and on 2 ranks
            for p in list(programs):
                want = expected["1" if p.name.endswith(" 1") else "2"]
                if not abs(p.first - want) <= SAME * abs(want):
                    print(f"  left out: {p.name}: its loss after {CHECKED_STEPS} steps is {p.first}, lhost's is {want}")
                    p.end()
                    programs.remove(p)
                    continue
                p.slice = max(2, round(0.8 / (p.run(4)["wall"] / 4)))
            times = {p.name: [] for p in programs}
            for i in range(4 if self.short else 8):
                visits = {p.name: [] for p in programs}
                for p in programs + programs[::-1]:
                    a = p.run(p.slice)
                    self.write(row=row, round=i, program=p.name, steps=p.slice, load=os.getloadavg()[0], **a)
                    visits[p.name].append((a["wall"] / p.slice * 1e3, a["cpu"] / p.slice * 1e3))
                for name, v in visits.items():
                    times[name].append([statistics.mean(x) for x in zip(*v)])
            return times
        finally:
            for p in programs:
                p.end()

    def report_c15(self, row, times):
        for name, rounds in times.items():
            wall, cpu = zip(*rounds)
            print(f"  {statistics.median(wall):8.2f} ms a step [{min(wall):.2f}, {max(wall):.2f}]   "
                  f"CPU of all ranks {statistics.median(cpu):8.2f} ms [{min(cpu):.2f}, {max(cpu):.2f}]   {name}")

        def ratio(title, a, b, factor=1.0):
            if a not in times or b not in times:
                return
            texts = []
            for clock, i in (("wall", 0), ("cpu", 1)):
                r = [factor * x[i] / y[i] for x, y in zip(times[a], times[b])]
                if clock == "cpu" and factor == 1.0 and title.startswith("efficiency"):
                    r = [2 * x for x in r]  # the CPU of two ranks against twice that of one
                texts.append(f"{clock} {statistics.median(r):6.3f} [{min(r):.3f}, {max(r):.3f}]")
                self.write(row=row, ratio=title, clock=clock, median=statistics.median(r), least=min(r), most=max(r))
            print(f"  {title:44} {'   '.join(texts)}", flush=True)

        ratio("A/A noise", "lhost 2 again", "lhost 2")
        ratio("Lightning 2 / lhost 2", "Lightning 2", "lhost 2")
        ratio("Lightning tuned 2 / lhost 2", "Lightning tuned 2", "lhost 2")
        for who in ("lhost", "Lightning", "Lightning tuned"):
            ratio(f"efficiency of {who}", f"{who} 1", f"{who} 2")

    def c12_ranks(self):
        """Start of two ranks: wall seconds from exec to the end of the first step, files cached."""
        makers = [self.lhost_ranks("lhost ddp_spawn", MLP, 32, 2, strategy="ddp_spawn"),
                  self.lhost_ranks("lhost ddp_spawn again", MLP, 32, 2, strategy="ddp_spawn"),
                  self.lhost_ranks("lhost ddp", MLP, 32, 2), self.lhost_ranks("lhost 1", MLP, 32, 1),
                  self.lightning_ranks("Lightning ddp_spawn", MLP, 32, 2, strategy="ddp_spawn"),
                  self.lightning_ranks("Lightning ddp", MLP, 32, 2)]
        makers = self.available(makers)
        seconds = {name: [] for name, _ in makers}
        for i in range(-1, 4 if self.short else 8):  # the first round warms the page cache
            for name, argv in makers if i % 2 == 0 else makers[::-1]:
                p = self.start_ranks(name, argv)
                a = p.run(1)
                cpu = cpu_of_tree(p.child.pid)
                p.end()
                if i >= 0:
                    seconds[name].append((a["since_exec"], cpu))
                    self.write(row="C12-ranks", round=i, program=name, cpu_total=cpu, load=os.getloadavg()[0], **a)
        for name, v in seconds.items():
            wall, cpu = zip(*v)
            r = [x[0] / y[0] for x, y in zip(v, seconds["lhost ddp_spawn"])]
            print(f"  {statistics.median(wall):8.3f} s [{min(wall):.3f}, {max(wall):.3f}]   CPU {statistics.median(cpu):7.2f} s   "
                  f"/ lhost ddp_spawn {statistics.median(r):6.2f} [{min(r):.2f}, {max(r):.2f}]   {name}", flush=True)
