"""A table with groups of unlike sizes: the weighted loss against the plain mean, worst group each.

python examples/tabular_groups.py
"""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from robustmd.adversary import Adversary, Fixed, GroupDRO, domain_means

SIZES = (1750, 90, 30, 530)  # of the groups; the small ones follow another rule
RULES = torch.tensor([[2.0, 0.5, 0.0], [-1.0, 2.0, 0.5], [-1.0, 2.0, -0.5], [1.5, 1.0, 0.0]])


def table(sizes: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(features [n, 3], targets [n] of 0 and 1, groups [n])."""
    groups = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    features = torch.randn(len(groups), 3)
    targets = (features * RULES[groups]).sum(1) + 0.5 * torch.randn(len(groups)) > 0
    return features, targets.float(), groups


def worst_accuracy(adversary: Adversary, steps: int) -> float:
    """Of a linear model's groups on fresh rows [%], trained with these weights."""
    torch.manual_seed(0)
    features, targets, groups = table(SIZES)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(steps):
        rows = torch.randint(len(groups), (256,))
        each = bce(model(features[rows]).squeeze(1), targets[rows], reduction="none")
        losses, counts = domain_means(each, groups[rows], len(SIZES))
        optimizer.zero_grad()
        adversary.weighted_loss(losses, counts=counts).backward()  # a group may have no row here
        optimizer.step()
    features, targets, groups = table((500,) * len(SIZES))
    right = ((model(features).squeeze(1) > 0) == (targets > 0)).float()
    return 100 * domain_means(right, groups, len(SIZES))[0].min().item()


def main(steps: int = 400) -> dict[str, float]:
    """{how: the worst group's accuracy [%]}."""
    by_size = [size / sum(SIZES) for size in SIZES]
    return {
        "plain mean": worst_accuracy(Fixed(len(SIZES), prior=by_size), steps),
        "group DRO": worst_accuracy(GroupDRO(len(SIZES), eta=0.05), steps),
    }


if __name__ == "__main__":
    for how, accuracy in main().items():
        print(f"{how}: {accuracy:.1f} %")
