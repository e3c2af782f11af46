"""`method=even`, and the static front: numbered points of the simplex, to compare with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from robustmd import adversary
from robustmd.config.ranges import COUNT_OR_ZERO, DISTRIBUTION
from robustmd.errors import UserError
from robustmd.registry import MethodFacts, Settings, key, method

STEPS = 10  # of the grid for K = 2
PARTS = 100  # a drawn point's weights are whole parts of this many


@method("even", learns=False, baseline=1, look=0, order=1)
class Even(Settings):
    """Mixture-Even: fixed weights, uniform or given."""

    prior: list[float] | None = key(None, DISTRIBUTION, "q; null: uniform", per_domain=True)
    point: int | None = key(
        None, COUNT_OR_ZERO, "of the static front, in place of q: K = 2: (i/10, 1 − i/10)"
    )

    def check(self) -> None:
        if None not in (self.point, self.prior):
            raise UserError(
                f"method.point={self.point}: method.prior is given as well; leave one out"
            )

    def settled(self, trained: Sequence[str]) -> Even:
        if self.point is None:
            return self
        return dataclasses.replace(self, prior=front_point(self.point, len(trained)), point=None)

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.Fixed(facts.num_domains, prior=self.prior)


def front_point(point: int, num_domains: int) -> list[float]:
    """Weights [K], K >= 2, of one point of the static front.

    K = 2: (i/10, 1 − i/10), i = 0..10. K > 2: the first K points are the corners, the others are
    drawn from Dirichlet(1, …, 1), which is uniform on the simplex, each from a stream of its own,
    and rounded to hundredths that sum to 1 (largest remainders).

    Raises:
        UserError: no such point.
    """
    if num_domains < 2:
        raise UserError(
            f"method.point={point}: fixed weights need two domains or more; leave it out"
        )
    if num_domains == 2:
        if point > STEPS:
            raise UserError(
                f"method.point={point}: with two domains it must be from 0 to {STEPS}, for the "
                f"weights i/{STEPS} and 1 − i/{STEPS}; for others give method.prior"
            )
        return [point / STEPS, (STEPS - point) / STEPS]
    if point < num_domains:
        return [float(k == point) for k in range(num_domains)]
    import numpy as np  # noqa: PLC0415 - checking settings needs no numpy otherwise

    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([point, num_domains])))
    share = rng.dirichlet(np.ones(num_domains)) * PARTS
    parts = np.floor(share).astype(int)
    largest = np.argsort(parts - share, kind="stable")[: PARTS - int(parts.sum())]
    parts[largest] += 1
    return [int(count) / PARTS for count in parts]
