"""Lanes do what each of their modules does alone."""

import pytest
import torch

from robustmd.adversary import L2, BestResponse, MirrorAscent, MultiplicativeWeights
from robustmd.studies.parallel import Lanes
from robustmd.studies.planted.descent import Player
from robustmd.studies.planted.methods import methods_compared

K = 4
COMPARED = {method.name: method for method in methods_compared()}
OF_THEOREMS = {
    "lemma 1": lambda T: MultiplicativeWeights(K, step="lemma1", total_steps=T, gamma=3.0),
    "theorem 3": lambda T: MirrorAscent(K, 0.5, c="auto", mu=3.0, total_steps=T),
    "theorem 4": lambda T: BestResponse(K, L2(), 0.5, every=1),
    "theorem 4, as printed": lambda T: BestResponse(K, None, every=1),
}


def check_lanes(make, variants) -> None:
    """Step by step, with ties, a loss that is not finite, and a lane that leaves; the last steps
    are recorded ones."""
    alone, modules = ([Player(make(one)) for one in variants] for _ in range(2))
    together = Lanes(modules)
    generator = torch.Generator().manual_seed(0)
    for step in range(90):
        f = torch.rand(len(alone), K, generator=generator, dtype=torch.float64) * 2
        if step % 7 == 0:
            f[:, 1:3] = 3.0
        if step in (10, 80):
            f[0, 0] = torch.nan
        for player, losses in zip(alone, f, strict=True):
            player(losses)
        together(f)
        expected = torch.stack([player.adversary.p for player in alone])
        found = together.state["adversary.p"]
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
        if step == 30:
            alone.pop()
            together.keep(len(alone))
    together.put_back(0, modules[0])
    for name, buffer in alone[0].state_dict().items():
        torch.testing.assert_close(modules[0].state_dict()[name], buffer, equal_nan=True)


@pytest.mark.parametrize("name", OF_THEOREMS)
def test_lanes_of_different_constants(name):
    check_lanes(OF_THEOREMS[name], [1000, 300, 100])


@pytest.mark.parametrize("name", COMPARED)
def test_lanes_of_different_sizes_and_references(name):
    method = COMPARED[name]

    def make(ratio: float):
        sizes, alone = [10, 20, 30, int(40 * ratio)], [0.1, 0.2, 0.1, 0.1 * ratio]
        return method.adversary(method.own[-1], 60, sizes, alone)

    check_lanes(make, [1.0, 5.0])
