"""Every rule of the adversary, for the properties that all must have, and vectors."""

import sys
from collections.abc import Callable, Sequence

import pytest
import torch

from robustmd.adversary import (
    FAMO,
    KL,
    L2,
    Adversary,
    AgnosticAscent,
    BestResponse,
    CVaR,
    DoReMi,
    DynamicWeightAverage,
    EntropicOT,
    ExcessAscent,
    Fixed,
    GroupDRO,
    MirrorAscent,
    MultiplicativeWeights,
    OptimisticAscent,
    OracleRounds,
    ProjectedAscent,
    Tilted,
    TopK,
    UncertaintyWeights,
    VarianceRisk,
)

UNIT = 2.0**-53  # u: one float64 operation gives x(1 + δ), |δ| ≤ u; a logarithm |δ| ≤ 2u
TINY = sys.float_info.min  # what a number too small for float64's digits may be off by


def vector(values: Sequence[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


K = 4
PRIOR = [0.4, 0.3, 0.2, 0.1]
HOLED = [0.5, 0.0, 0.3, 0.2]  # a prior that leaves a domain out

RULES: dict[str, Callable[[], Adversary]] = {
    "fixed": lambda: Fixed(K, prior=PRIOR),
    "opt": lambda: ProjectedAscent(K, L2(), 0.1, total_steps=1000),
    "opt, plain step": lambda: ProjectedAscent(K, L2(), 0.1, c=0.0),
    "opt, constant step": lambda: ProjectedAscent(K, L2(), 0.1, step="constant", eta=0.01),
    "opt, holed prior": lambda: ProjectedAscent(K, L2(), 1.0, total_steps=1000, prior=HOLED),
    "ot": lambda: ProjectedAscent(K, EntropicOT(), 0.1, total_steps=1000, prior=PRIOR),
    "ot, holed prior": lambda: ProjectedAscent(
        K, EntropicOT(nu=3.0, sweeps=2), 1.0, total_steps=1000, prior=HOLED
    ),
    "kl": lambda: MirrorAscent(K, 0.1, total_steps=1000, prior=PRIOR),
    "kl, plain step": lambda: MirrorAscent(K, 0.1, c=0.0),
    "kl, holed prior": lambda: MirrorAscent(K, 0.1, total_steps=1000, prior=HOLED),
    "kl, constant step": lambda: MirrorAscent(K, 0.1, step="constant", eta=0.1),
    "minimax, lemma 1": lambda: MultiplicativeWeights(K, step="lemma1", total_steps=1000),
    "minimax, theorem 1": lambda: MultiplicativeWeights(
        K, step="theorem1", total_steps=1000, gamma=3.0, prior=HOLED
    ),
    "minimax, constant step": lambda: MultiplicativeWeights(K, step="constant", eta=0.1),
    "best response": lambda: BestResponse(K, None),
    "best response, L2": lambda: BestResponse(K, L2(), 1.0, prior=PRIOR),
    "best response, KL": lambda: BestResponse(K, KL(), 1.0, prior=HOLED),
    "best response, OT": lambda: BestResponse(K, EntropicOT(), 1.0, prior=HOLED),
    "oracle": lambda: OracleRounds(K, rounds=50, prior=PRIOR),
    "DoReMi": lambda: DoReMi(K, eta=0.1),
    "group DRO": lambda: GroupDRO(K, eta=0.1),
    "group DRO, adjusted": lambda: GroupDRO(K, adjustment=2.0, sizes=[10, 1000, 50, 7]),
    "agnostic": lambda: AgnosticAscent(K, eta=0.1),
    "tilted": lambda: Tilted(K, 2.0, prior=HOLED),
    "tilted, away from the worst": lambda: Tilted(K, -3.0, prior=PRIOR),
    "cvar": lambda: CVaR(K, 0.3, prior=PRIOR),
    "cvar, holed prior": lambda: CVaR(K, 0.9, prior=HOLED),
    "top 2": lambda: TopK(K, 2),
    "excess": lambda: ExcessAscent(
        K, L2(), 1.0, reference=[0.5, 0.0, 2.0, -1.0], total_steps=1000, prior=PRIOR
    ),
    "optimistic": lambda: OptimisticAscent(K, L2(), 0.1, total_steps=1000),
    "variance": lambda: VarianceRisk(K, 1.0),
    "uncertainty": lambda: UncertaintyWeights(K, eta=0.1),
    "dynamic average": lambda: DynamicWeightAverage(K, every=3),
    "famo": lambda: FAMO(K),
}


@pytest.fixture(params=RULES, ids=lambda name: name.replace(", ", "-").replace(" ", "_"))
def make_rule(request: pytest.FixtureRequest) -> Callable[[], Adversary]:
    """Makes a fresh adversary over 4 domains, the same each time."""
    return RULES[request.param]
