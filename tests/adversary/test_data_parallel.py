"""Processes that each have a part of the batch play one adversary."""

import datetime
import json
import subprocess
import sys

import pytest
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from robustmd.adversary import L2, ProjectedAscent, Tilted, domain_means

# Per rank: the mean losses of its examples, and how many of each domain it has.
MEANS = [[4.0, 1.0, torch.nan], [1.0, 2.0, torch.nan]]
COUNTS = [[1, 3, 0], [3, 1, 0]]
POOLED = [(4 * 1 + 1 * 3) / 4, (1 * 3 + 2 * 1) / 4, 0.0]  # not [2.5, 1.5], the mean of the means
PRESENT = [True, True, False]


def make() -> ProjectedAscent:
    return ProjectedAscent(3, L2(), 0.5, total_steps=100)


def examples(*ranks: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(inputs [n, 3], domains [n]) of these ranks, as many of each domain as `COUNTS` says."""
    parts = [torch.repeat_interleave(torch.arange(3), torch.tensor(COUNTS[r])) for r in ranks]
    inputs = [
        torch.arange(3.0 * len(part)).view(-1, 3) - r for r, part in zip(ranks, parts, strict=True)
    ]
    return torch.cat(inputs), torch.cat(parts)


def gradient(model: torch.nn.Module, inputs: torch.Tensor, domains: torch.Tensor) -> list[float]:
    """Of the weighted loss in a model's weights."""
    means, counts = domain_means(model(inputs).square().squeeze(1), domains, 3)
    Tilted(3, 0.01).weighted_loss(means, counts=counts).backward()  # its weights need all means
    (weight, _) = model.parameters()
    assert weight.grad is not None
    return weight.grad.flatten().tolist()


def play(rank: int, store: str) -> list[list[float]]:
    """The weights after every update of one rank of two; the last has a NaN on rank 1 alone."""
    group = distributed.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=60),
    )
    adversary, seen = make(), []
    for broken in (0.0, 0.0, torch.nan):
        losses = torch.tensor(MEANS[rank]) + rank * broken
        adversary.update(losses, counts=torch.tensor(COUNTS[rank]), group=group)
        seen.append([*adversary.weights.tolist(), float(adversary.skipped)])
    torch.manual_seed(0)
    seen.append(gradient(DistributedDataParallel(torch.nn.Linear(3, 1)), *examples(rank)))
    distributed.destroy_process_group()
    return seen


@pytest.mark.skipif(not distributed.is_gloo_available(), reason="needs gloo")
def test_two_processes_have_the_weights_of_one_with_all_examples(tmp_path):
    store = str(tmp_path / "store")
    with subprocess.Popen([sys.executable, __file__, store], stdout=subprocess.PIPE) as other:
        first = play(0, store)
        assert other.stdout is not None
        second = json.load(other.stdout)
    assert second == first
    alone, seen = make(), []
    for _ in range(2):
        alone.update(torch.tensor(POOLED), torch.tensor(PRESENT))
        seen.append([*alone.weights.tolist(), 0.0])
    *first, averaged = first
    assert first == [*seen, [*alone.weights.tolist(), 1.0]]
    torch.manual_seed(0)  # DDP averages the gradients: it is that of all examples at once
    assert averaged == pytest.approx(gradient(torch.nn.Linear(3, 1), *examples(0, 1)), rel=1e-5)


def test_one_process_needs_no_group():
    counted, plain = make(), make()
    counted.update(torch.tensor(MEANS[0]), counts=torch.tensor(COUNTS[0]))
    plain.update(torch.tensor(MEANS[0]), torch.tensor(PRESENT))
    assert torch.equal(counted.p, plain.p)


def test_a_group_without_counts_is_refused():
    with pytest.raises(ValueError, match="group needs counts"):
        make().update(torch.ones(3), group=object())
    with pytest.raises(ValueError, match="counts has shape"):
        make().update(torch.ones(3), counts=torch.ones(2))


if __name__ == "__main__":  # the second process
    print(json.dumps(play(1, sys.argv[1])))
