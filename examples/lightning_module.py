"""An adversary in a LightningModule: a module of it, so that checkpoints keep its state.

pip install lightning
python examples/lightning_module.py
"""

import lightning
import torch
from own_loop import DOMAINS, batch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from robustmd.adversary import L2, ProjectedAscent, domain_means


class Robust(lightning.LightningModule):
    """A small classifier whose worst domain is to do well."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        layers = torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
        self.model = torch.nn.Sequential(*layers)
        self.adversary = ProjectedAscent(len(DOMAINS), L2(), lam=0.1, total_steps=steps)

    def training_step(self, rows: list[torch.Tensor], _: int) -> torch.Tensor:
        """The weighted loss; under DDP every process has the same weights."""
        inputs, labels, domains = rows
        each = cross_entropy(self.model(inputs), labels, reduction="none")
        losses, counts = domain_means(each, domains, len(DOMAINS))
        return self.adversary.weighted_loss(losses, counts=counts)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.model.parameters(), lr=1e-2)


def main(steps: int = 200) -> Robust:
    """Trains; gives the module."""
    lightning.seed_everything(0, verbose=False)
    data = DataLoader(TensorDataset(*batch(1024)), batch_size=64, shuffle=True)
    module = Robust(steps)
    trainer = lightning.Trainer(
        max_steps=steps,
        max_epochs=-1,
        accelerator="auto",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, data)
    return module


if __name__ == "__main__":
    print(main().adversary.weights.tolist())
