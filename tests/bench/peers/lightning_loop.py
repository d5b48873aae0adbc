"""The same work as a LightningModule, paced by driver.py: the batches' iterator waits for it, so nothing restarts.
The batches are ready tensors, which is less work than the DataLoader of a real program.
usage: lightning_loop.py <images> <labels> <sgd|adamw> <fused|default> <barebones|default> <scalars> <folder>
scalars: values logged in each step, to CSV and TensorBoard; 0 = Lightning's own logger and nothing logged"""
import logging
import sys
import warnings

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning as L  # noqa: E402
import torch  # noqa: E402
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger  # noqa: E402
from pace import Pace  # noqa: E402
from work import digits, net, optimizer, prepare  # noqa: E402

images, labels, optimizer_name, fused, mode, scalars, folder = sys.argv[1:8]
prepare()
pace = Pace()


class Batches:
    """As many passes over the data as the driver wants, as one epoch."""
    batches = digits(images, labels)

    def __len__(self):  # with a length Lightning asks for a batch only when it needs it
        return 1 << 40

    def __iter__(self):
        i = 0
        if not pace.wait():
            return
        while True:
            yield self.batches[i]
            i = (i + 1) % len(self.batches)
            if pace.step():
                pace.answer(model.newest())
                if not pace.wait():
                    return


class Mlp(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = net()
        self.names = [f"scalar_{i}" for i in range(int(scalars))]
        self.loss = None

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x.flatten(1)), y)
        for name in self.names:
            self.log(name, loss)
        if pace.left == 1:
            self.loss = loss.detach()
        return loss

    def newest(self):
        return self.loss.item()

    def configure_optimizers(self):
        return optimizer(optimizer_name, fused == "fused", self.parameters())


model = Mlp()
options = {"max_epochs": 1, "accelerator": "cpu", "devices": 1}
if mode == "barebones":
    options["barebones"] = True
else:
    options["default_root_dir"] = folder
    if model.names:
        options["logger"] = [CSVLogger(folder), TensorBoardLogger(folder)]
        options["log_every_n_steps"] = 1
trainer = L.Trainer(**options)
trainer.fit(model, train_dataloaders=Batches())
