#!/usr/bin/env python3
"""TensorBoard's own reader finds what the jsonl logger wrote: python3 python_tensorboard_test.py BUILD_FOLDER"""
import struct
import tempfile
import unittest

import check_tensorboard
import lhost_command as lhost


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


class TensorBoard(unittest.TestCase):
    def test_its_reader_finds_every_value_of_a_run_and_of_its_continuation(self):
        with tempfile.TemporaryDirectory() as folder:
            start = [lhost.SOURCE / "configs" / "digits.toml", 'logger=[{use="jsonl"},{use="tensorboard"}]',
                     "trainer.log_every_n_steps=5"]
            run, _ = lhost.run(folder, *start, "trainer.max_epochs=2")
            _, result = lhost.run(folder, *start, "trainer.max_epochs=3", "--resume", "last")
            found = list(check_tensorboard.values(run / "tensorboard"))
            expected = [(name, record["global_step"], float32(value)) for record in lhost.records(run)
                        for name, value in record["metrics"].items()]
        self.assertEqual([v for v in found if isinstance(v[2], float)], expected)
        self.assertEqual(max(step for _, step, _ in expected), result["stages"]["fit"]["global_step"])
        self.assertGreaterEqual({name for name, _, _ in expected}, {"loss", "val_loss", "val_acc", "test_acc"})
        texts = "".join(v[2] for v in found if isinstance(v[2], str))
        self.assertIn("optimizer.lr", texts)


if __name__ == "__main__":
    lhost.main()
