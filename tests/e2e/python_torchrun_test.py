#!/usr/bin/env python3
"""torchrun's agent launches lhost: python3 python_torchrun_test.py BUILD_FOLDER"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import lhost_command as lhost


class Torchrun(unittest.TestCase):
    def ranks(self, folder, *more, restarts=0):
        command = [sys.executable, "-m", "torch.distributed.run", "--no-python", "--standalone", "--nproc-per-node", "2",
                   "--max-restarts", str(restarts), lhost.BUILD / "bin" / "lhost", "run", lhost.SOURCE / "configs" / "digits-ddp.toml",
                   f"run.dir={folder}", "trainer.max_epochs=2", "model.dropout=0", *more]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                              env={**os.environ, "OMP_NUM_THREADS": "1",
                                   "LHOST_PLUGIN_PATH": str(lhost.BUILD / "tests" / "fixtures" / "e2e")})

    def test_the_run_is_that_of_lhosts_own_launcher(self):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            done = self.ranks(a)
            self.assertEqual(done.returncode, 0, done.stdout)
            run_folder, = pathlib.Path(a).glob("*/version_*")
            self.assertTrue((run_folder / "rank_1.log").exists())
            _, own = lhost.run(b, lhost.SOURCE / "configs" / "digits-ddp.toml", "trainer.max_epochs=2",
                               "model.dropout=0")
            theirs = lhost.json.loads((run_folder / "result.json").read_text())
        self.assertEqual(theirs["metrics"], own["metrics"])
        self.assertIn("launcher:torchrun", theirs["versions"]["plugins"])

    def test_the_agents_store_outlives_a_rank_that_was_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            kill = f'callback+={{use="saboteur", rank=1, act="kill9", at=3, unless="{folder}/killed"}}'
            done = self.ranks(folder, kill, restarts=1)
            results = [lhost.json.loads(p.read_text())["outcome"] for p in pathlib.Path(folder).glob("*/*/result.json")]
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(sorted(results), ["done", "failed"])

    def test_a_world_of_another_size_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.ranks(folder, "trainer.devices=3")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("LOCAL_WORLD_SIZE", done.stdout)


if __name__ == "__main__":
    lhost.main()
