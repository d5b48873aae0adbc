"""How driver.py paces a program that trains; the same as ../pace.hpp, also with BENCH_PIPE. Standard library only."""
import json
import os
import sys
import time


class Pace:
    def __init__(self):
        pipe = os.environ.get("BENCH_PIPE")
        self.questions = open(pipe + ".in") if pipe else sys.stdin
        # whatever else is printed must not get between the answers
        self.answers = open(pipe + ".out", "w") if pipe else os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self.left = 0

    def wait(self):
        """Waits for the driver; False: there is nothing more to do."""
        line = self.questions.readline().strip()
        if not line:
            return False
        self.left = int(line)
        self.wall, self.cpu, self.thread = time.monotonic(), time.process_time(), time.thread_time()
        return True

    def step(self):
        self.left -= 1
        return self.left == 0

    def answer(self, loss):
        wall, cpu, thread = time.monotonic(), time.process_time(), time.thread_time()
        json.dump({"wall": wall - self.wall, "cpu": cpu - self.cpu, "thread": thread - self.thread, "cpu_total": cpu,
                   "loss": loss}, self.answers)
        self.answers.write("\n")
        self.answers.flush()
