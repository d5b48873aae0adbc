#!/usr/bin/env python3
"""Checkpoints go both ways between lhost and PyTorch: python3 python_checkpoint_test.py BUILD_FOLDER"""
import pathlib
import sys
import tempfile
import unittest

import torch

import lhost_command as lhost

sys.path.insert(0, str(lhost.TRAINING))
import make as pytorch  # noqa: E402

MODELS = {"mlp": pytorch.Mlp, "convnet": pytorch.ConvNet}
OPTIMIZERS = {
    "sgd": {"use": "sgd", "lr": 0.05},
    "sgd with momentum": {"use": "sgd", "lr": 0.05, "momentum": 0.9},
    "sgd with nesterov": {"use": "sgd", "lr": 0.05, "momentum": 0.9, "nesterov": True},
    "adam": {"use": "adam", "lr": 1e-3},
    "adamw": {"use": "adamw", "lr": 1e-3, "weight_decay": 0.01},
    "adamw with amsgrad": {"use": "adamw", "lr": 1e-3, "weight_decay": 0.01, "amsgrad": True},
}
TEST_DATA = [f'data.test={{images="{pytorch.DATA}/digits-test-images.idx3-ubyte.gz", '
             f'labels="{pytorch.DATA}/digits-test-labels.idx1-ubyte.gz"}}']
TOLERANCE = 1e-6  # of a tensor's greatest value


def with_optimizer(model, optimizer):
    return {"state_dict": model.state_dict(), "optimizer": optimizer.state_dict(), "comment": "any other entry"}


def like_lightning(model, optimizer):
    return {"epoch": 1, "global_step": 5, "pytorch-lightning_version": "2.6.0", "state_dict": model.state_dict(),
            "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"current": {"completed": 1}}}},
            "callbacks": {}, "optimizer_states": [optimizer.state_dict()], "lr_schedulers": [],
            "hparams_name": "kwargs", "hyper_parameters": {"hidden": [16, 12]}}


def settings(optimizer):
    return [f"optimizer.{key}={str(value).lower()}" for key, value in optimizer.items()]


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_same_state(self, found, expected):
        self.assertEqual(list(found), list(expected))
        for name, tensor in expected.items():
            self.assertEqual((found[name].dtype, found[name].shape), (tensor.dtype, tensor.shape), name)
            difference = (found[name] - tensor).abs().max().item()
            self.assertLessEqual(difference, TOLERANCE * tensor.abs().max().item(), name)

    def test_what_lhost_trained_predicts_the_same_in_pytorch(self):
        images, labels = pytorch.digits("test")
        for name, model_class in MODELS.items():
            with self.subTest(name):
                folder, result = lhost.run(self.folder / name, lhost.TRAINING / f"{name}.toml", 'run.stages=["fit","test"]',
                                           "trainer.max_steps=200", "checkpoint[0].every_n_steps=200",
                                           *settings(OPTIMIZERS["adamw"]), "optimizer.lr=1e-2", *TEST_DATA)
                file = folder / "checkpoints" / "final.ckpt"
                for mapped in False, True:
                    model = model_class()
                    model.load_state_dict(torch.load(file, weights_only=True, mmap=mapped)["state_dict"])
                    model.eval()
                    with torch.no_grad():
                        logits = model(images)
                    loss = torch.nn.functional.cross_entropy(logits, labels).item()
                    accuracy = (logits.argmax(1) == labels).double().mean().item()
                    self.assertGreater(accuracy, 0.5)  # it has learnt something
                    self.assertAlmostEqual(result["metrics"]["test"]["test_loss"], loss, delta=1e-6 * loss)
                    self.assertAlmostEqual(result["metrics"]["test"]["test_acc"], accuracy, delta=1e-6)

    def assert_goes_on(self, model_name, optimizer, file_content):
        """Five steps in PyTorch and five in lhost equal ten in PyTorch, over the same five batches twice."""
        def trained(steps):
            torch.manual_seed(3)
            model = MODELS[model_name]()
            data = pytorch.digits("train")
            return model, pytorch.train(model, *data, optimizer, {"limit_train_batches": 5}, steps=steps)[1]

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "python.ckpt")
            torch.save(file_content(*trained(5)), file)
            run, _ = lhost.run(folder, lhost.TRAINING / f"{model_name}.toml", *settings(optimizer), "trainer.max_steps=5",
                               "checkpoint[0].every_n_steps=5", "--resume", file)
            found = torch.load(run / "checkpoints" / "final.ckpt", weights_only=True)["state_dict"]
        self.assert_same_state(found, trained(10)[0].state_dict())

    def test_what_pytorch_saved_goes_on_in_lhost(self):
        for name, optimizer in OPTIMIZERS.items():
            with self.subTest(name):
                self.assert_goes_on("mlp", optimizer, with_optimizer)
        with self.subTest("convnet"):
            self.assert_goes_on("convnet", OPTIMIZERS["adamw"], with_optimizer)

    def test_groups_are_counted_as_python_counts(self):
        """Python numbers its state group after group."""
        def saved(model, groups):
            optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
            images, labels = pytorch.digits("train")
            torch.nn.functional.cross_entropy(model(images[:32]), labels[:32]).backward()
            optimizer.step()
            file = self.folder / "groups.ckpt"
            torch.save(with_optimizer(model, optimizer), file)
            return {name: optimizer.state[p]["momentum_buffer"] for name, p in model.named_parameters()}, file

        def weights_first(model):
            named = list(model.named_parameters())
            return [{"params": [p for n, p in named if "bias" not in n]}, {"params": [p for n, p in named if "bias" in n]}]

        model = pytorch.Mlp()
        momentum, file = saved(model, weights_first(model))
        run, _ = lhost.run(self.folder, lhost.TRAINING / "mlp.toml", "optimizer.use=sgd", "optimizer.lr=0", "optimizer.momentum=1", "trainer.max_steps=1",
                           'optimizer.group=[{match="bias$"}]', "optimizer.dampening=1", "checkpoint[0].every_n_steps=1",
                           "--resume", file)
        state = torch.load(run / "checkpoints" / "final.ckpt", weights_only=True)["optimizer"]
        for name, expected in momentum.items():  # with dampening 1 and momentum 1 a step leaves the momentum as it is
            self.assertTrue(torch.equal(state[name]["momentum_buffer"], expected), name)

    def test_what_lightning_saved_goes_on_in_lhost(self):
        for name in "sgd with momentum", "adamw":
            with self.subTest(name):
                self.assert_goes_on("mlp", OPTIMIZERS[name], like_lightning)


if __name__ == "__main__":
    lhost.main()
