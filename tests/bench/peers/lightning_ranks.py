"""A LightningModule on one or two ranks, rank 0 paced by driver.py through BENCH_PIPE; ../ranks.py makes the data.
Each rank gets its share of every global batch as ready tensors, which is less work than a DataLoader with a sampler.
usage: lightning_ranks.py <images> <labels> <batch> <model, as mlp-1024-1024-10 or convnet-32-64> <default|tuned> <ranks> <auto|ddp|ddp_spawn> <folder>
tuned: barebones, fused optimizer, gradients are views of the buckets, the graph is static"""
import gzip
import logging
import os
import sys
import warnings

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning as L  # noqa: E402
import torch  # noqa: E402
from lightning.pytorch.strategies import DDPStrategy  # noqa: E402
from pace import Pace  # noqa: E402
from work import make, optimizer, prepare  # noqa: E402

CHECKED_STEPS = 20  # as in ../ranks.py


def rows(path, header):
    with gzip.open(path) as f:
        return torch.frombuffer(bytearray(f.read()[header:]), dtype=torch.uint8)


class Batches:
    """As many passes as the driver wants, as one epoch; made anew in a process that was spawned."""

    def __init__(self, images, labels, size):
        self.files, self.size, self.module = (images, labels), size, None

    def __len__(self):
        return 1 << 40

    def load(self, rank, ranks):
        y = rows(self.files[1], 8).long()
        x = rows(self.files[0], 16).reshape(len(y), -1).float() / 256
        whole = self.size * ranks
        at = range(rank * self.size, len(y) - len(y) % whole, whole)
        return [(x[i:i + self.size], y[i:i + self.size]) for i in at]

    def __iter__(self):
        trainer = self.module.trainer
        prepare()
        batches = self.load(trainer.global_rank, trainer.world_size)
        pace = Pace() if trainer.global_rank == 0 else None
        self.module.pace = pace
        if pace and not pace.wait():
            return
        i = 0
        while True:
            yield batches[i]
            i = (i + 1) % len(batches)
            if pace and pace.step():
                pace.answer(self.module.loss.item())
                if not pace.wait():
                    return


class Classifier(L.LightningModule):
    def __init__(self, model, fused):
        super().__init__()
        self.net, self.fused, self.loss, self.pace = make(model), fused, None, None

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        if index == CHECKED_STEPS - 1:  # here driver.py compares it: the mean over ranks, as lhost gives it
            self.loss = self.trainer.strategy.reduce(loss.detach(), reduce_op="mean")
        elif self.pace and self.pace.left == 1:
            self.loss = loss.detach()
        return loss

    def configure_optimizers(self):
        return optimizer("sgd", self.fused, self.parameters())


def main():
    images, labels, size, model, mode, ranks, strategy, folder = sys.argv[1:9]
    prepare()
    module = Classifier(model, mode == "tuned")
    batches = Batches(images, labels, int(size))
    batches.module = module
    options = {"max_epochs": 1, "accelerator": "cpu", "devices": int(ranks), "strategy": strategy}
    if mode == "tuned":
        options["barebones"] = True
        if strategy != "auto":
            start = {"ddp": "popen", "ddp_spawn": "spawn"}[strategy]
            options["strategy"] = DDPStrategy(gradient_as_bucket_view=True, static_graph=True, start_method=start)
    else:
        options["default_root_dir"] = folder
    L.Trainer(**options).fit(module, train_dataloaders=batches)
    os._exit(0)  # the other rank still waits for this one; the driver ends both


if __name__ == "__main__":
    main()
