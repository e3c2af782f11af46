"""Arguments out of range are refused in one line that says what was given and what is allowed."""

import pytest
import torch

from robustmd.adversary import (
    KL,
    L2,
    AgnosticAscent,
    BestResponse,
    CVaR,
    ExcessAscent,
    Fixed,
    GroupDRO,
    MirrorAscent,
    MultiplicativeWeights,
    OptimisticAscent,
    OracleRounds,
    ProjectedAscent,
    RegretMeter,
    Tilted,
    TopK,
    VarianceRisk,
)

ANY_RULE = [
    lambda k, prior: Fixed(k, prior=prior),
    lambda k, prior: ProjectedAscent(k, L2(), 1.0, c=0, prior=prior),
    lambda k, prior: MirrorAscent(k, 1.0, c=0, prior=prior),
    lambda k, prior: MultiplicativeWeights(k, total_steps=10, prior=prior),
    lambda k, prior: BestResponse(k, L2(), 1.0, prior=prior),
    lambda k, prior: OracleRounds(k, 10, prior=prior),
    lambda k, prior: Tilted(k, 1.0, prior=prior),
    lambda k, prior: CVaR(k, 0.5, prior=prior),
    lambda k, prior: OptimisticAscent(k, L2(), 1.0, c=0, prior=prior),
    lambda k, prior: RegretMeter(k, L2(), 1.0, prior=prior),
]


@pytest.mark.parametrize("make", ANY_RULE)
@pytest.mark.parametrize(
    ("k", "prior", "said"),
    [
        (0, None, "num_domains is 0; it must be a whole number, 1 or above"),
        (2.0, None, "num_domains is 2.0"),
        (True, None, "num_domains is True"),
        (2, [0.5, 0.3, 0.2], "prior has 3 weights; it needs one per domain: 2"),
        (2, [1.5, -0.5], "must be finite and not negative"),
        (2, [float("nan"), 1.0], "must be finite and not negative"),
        (2, [0.5, 0.4], "sums to 0.9; it must sum to 1"),
    ],
)
def test_domains_and_prior(make, k, prior, said):
    with pytest.raises(ValueError, match=said) as caught:
        make(k, prior)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ProjectedAscent(2, L2(), 0, c=0), "lam is 0; it must be"),
        (lambda: ProjectedAscent(2, L2(), float("inf"), c=0), "lam is inf"),
        (lambda: ProjectedAscent(2, L2(), 1, c=-1), "c is -1; it must be"),
        (lambda: ProjectedAscent(2, L2(), 1, c="best"), "c is 'best'; it must be one of auto"),
        (lambda: ProjectedAscent(2, L2(), 1), "give total_steps"),
        (lambda: ProjectedAscent(2, L2(), 1, total_steps=0), "total_steps is 0"),
        (lambda: ProjectedAscent(2, L2(), 1, mu=-1, total_steps=9), "mu is -1"),
        (lambda: ProjectedAscent(2, L2(), 1, step="constant"), "give eta"),
        (lambda: ProjectedAscent(2, L2(), 1, step="constant", eta=0), "eta is 0"),
        (lambda: ProjectedAscent(2, L2(), 1, step="linear"), "one of theory, constant"),
        (lambda: ProjectedAscent(2, KL(), 1, c=0), "use MirrorAscent"),
        (lambda: MirrorAscent(2, -1, c=0), "lam is -1"),
        (lambda: MirrorAscent(2, 1), "give total_steps"),
        (lambda: MirrorAscent(2, 1, mu=0, total_steps=9), "mu is 0"),
        (lambda: MultiplicativeWeights(2), "total_steps is None|give total_steps"),
        (lambda: MultiplicativeWeights(2, total_steps=9, gamma=0), "gamma is 0"),
        (lambda: MultiplicativeWeights(2, step="constant"), "give eta"),
        (lambda: MultiplicativeWeights(2, step="theory"), "one of lemma1, theorem1, constant"),
        (lambda: BestResponse(2, L2()), "lam is None"),
        (lambda: BestResponse(2, L2(), 0), "lam is 0"),
        (lambda: BestResponse(2, None, every=0), "every is 0"),
        (lambda: BestResponse(2, None, prior=[0.5, 0.5]), "no effect without a regularizer"),
        (lambda: OracleRounds(2, 0), "rounds is 0"),
        (lambda: OracleRounds(2, 5, eta=0), "eta is 0"),
        (lambda: OracleRounds(2, 5, every=0), "every is 0"),
        (lambda: RegretMeter(2, L2(), 0), "lam is 0"),
        (lambda: GroupDRO(2, eta=0), "eta is 0; it must be a finite number above 0"),
        (lambda: GroupDRO(2, adjustment=-1, sizes=[1, 1]), "adjustment is -1"),
        (lambda: GroupDRO(2, adjustment=1), "adjustment is 1, which needs the domains' sizes"),
        (lambda: GroupDRO(2, adjustment=1, sizes=[5]), "sizes has 1 numbers; it needs .* 2"),
        (
            lambda: GroupDRO(2, adjustment=1, sizes=[5, 0]),
            "sizes is 0.0; it must be a finite number above",
        ),
        (lambda: AgnosticAscent(2, eta=-1), "eta is -1"),
        (lambda: Tilted(2, float("inf")), "tilt is inf; it must be a finite number"),
        (lambda: CVaR(2, 0), "alpha is 0; it must be a number above 0 and at most 1"),
        (lambda: CVaR(2, 1.5), "alpha is 1.5"),
        (lambda: TopK(2, 0), "k is 0; it must be a whole number, 1 or above"),
        (lambda: TopK(2, 3), "k is 3; there are only 2 domains"),
        (lambda: ExcessAscent(2, L2(), 1, c=0, reference=[1]), "reference has 1 numbers"),
        (lambda: ExcessAscent(2, L2(), 1, c=0, reference=[1, float("nan")]), "reference is nan"),
        (lambda: VarianceRisk(2, -1), "beta is -1"),
    ],
)
def test_a_value_out_of_range(make, said):
    with pytest.raises(ValueError, match=said) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_prior_may_be_a_tensor_and_is_made_to_sum_to_1_exactly():
    adversary = Fixed(3, prior=torch.tensor([0.1, 0.2, 0.7]))
    assert float(adversary.p.sum()) == pytest.approx(1, abs=1e-15)
