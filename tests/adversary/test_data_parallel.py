"""Processes that each have a part of the batch play one adversary."""

import datetime
import json
import subprocess
import sys

import pytest
import torch
from torch import distributed

from robustmd.adversary import L2, ProjectedAscent

# Per rank: the mean losses of its examples, and how many of each domain it has.
MEANS = [[4.0, 1.0, torch.nan], [1.0, 2.0, torch.nan]]
COUNTS = [[1, 3, 0], [3, 1, 0]]
POOLED = [(4 * 1 + 1 * 3) / 4, (1 * 3 + 2 * 1) / 4, 0.0]  # not [2.5, 1.5], the mean of the means
PRESENT = [True, True, False]


def make() -> ProjectedAscent:
    return ProjectedAscent(3, L2(), 0.5, total_steps=100)


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
    own = torch.tensor(MEANS[rank], requires_grad=True)
    make().weighted_loss(own, counts=torch.tensor(COUNTS[rank]), group=group).backward()
    assert own.grad is not None
    seen.append(own.grad.tolist())
    distributed.destroy_process_group()
    return seen


@pytest.mark.skipif(not distributed.is_gloo_available(), reason="needs gloo")
def test_two_processes_have_the_weights_of_one_with_all_examples(tmp_path):
    store = str(tmp_path / "store")
    with subprocess.Popen([sys.executable, __file__, store], stdout=subprocess.PIPE) as other:
        first = play(0, store)
        assert other.stdout is not None
        second = json.load(other.stdout)
    shares = torch.tensor([first.pop(), second.pop()])
    assert second == first
    alone, seen = make(), []
    for _ in range(2):
        alone.update(torch.tensor(POOLED), torch.tensor(PRESENT))
        seen.append([*alone.weights.tolist(), 0.0])
    assert first == [*seen, [*alone.weights.tolist(), 1.0]]
    # DDP averages over two: a rank's mean counts as much as its share of the domain's examples.
    counts = torch.tensor(COUNTS) / 4
    torch.testing.assert_close(shares / 2, make().weights * counts)


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
