"""An adversary in a loop of one's own: two domains, one model, the weights learned beside it.

python examples/own_loop.py
"""

import torch
from torch.nn.functional import cross_entropy

from robustmd.adversary import L2, ProjectedAscent, domain_means

DOMAINS = ("clear", "noisy")


def batch(size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(inputs [n, 2], labels [n], domains [n]): a circle in a square; one domain is noisier."""
    domains = torch.randint(len(DOMAINS), (size,))
    points = 2 * torch.rand(size, 2) - 1
    labels = (points.norm(dim=1) < 0.8).long()
    return points + 0.3 * domains[:, None] * torch.randn(size, 2), labels, domains


def main(steps: int = 500) -> torch.Tensor:
    """Trains; gives the weights p [K]."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    adversary = ProjectedAscent(len(DOMAINS), L2(), lam=1.0, c="auto", total_steps=steps)
    for _ in range(steps):
        inputs, labels, domains = batch(64)
        each = cross_entropy(model(inputs), labels, reduction="none")
        losses, counts = domain_means(each, domains, len(DOMAINS))  # [K]
        optimizer.zero_grad()
        adversary.weighted_loss(losses, counts=counts).backward()
        optimizer.step()
    return adversary.weights


if __name__ == "__main__":
    for name, weight in zip(DOMAINS, main().tolist(), strict=True):
        print(f"{name}: {weight:.3f}")
