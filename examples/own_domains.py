"""Domains of one's own from tensors: by name on the command line, or handed over in Python.

cd examples
robustmd train imports=[own_domains] data=shades method=opt training.iterations=200
python own_domains.py
"""

import torch

import robustmd
from robustmd.domains import DomainSet


@robustmd.data("shades")
class Shades(robustmd.Settings):
    """Bright and dark pictures of three classes."""

    n: int = 120  # training images of each domain

    def load(self) -> DomainSet:
        random = torch.Generator().manual_seed(0)

        def split(count: int, contrast: float) -> tuple[torch.Tensor, torch.Tensor]:
            labels = torch.arange(count) % 3
            shade = labels.view(count, 1, 1, 1) * contrast
            images = torch.rand(count, 32, 32, 3, generator=random) + shade
            return (images * 60).to(torch.uint8), labels

        contrasts = {"bright": 1.0, "dark": 0.2}
        domains = {name: (*split(self.n, c), *split(60, c)) for name, c in contrasts.items()}
        return DomainSet.from_tensors(domains, name="shades", classes=["low", "middle", "high"])


def main(*overrides: str) -> robustmd.Run:
    """Trains on the domains themselves; gives the run."""
    return robustmd.train("method=opt", *overrides, domains=Shades().load())


if __name__ == "__main__":
    run = main("training.iterations=200")
    print(run)
    print(run.summary["worst"]["test"])
