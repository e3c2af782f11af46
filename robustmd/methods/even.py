"""`method=even`: Mixture-Even, fixed weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Optional

from robustmd import adversary
from robustmd.config.ranges import COUNT_OR_ZERO, DISTRIBUTION
from robustmd.errors import UserError
from robustmd.registry import MethodFacts, Settings, key, method
from robustmd.static_front import front_point


@method("even", learns=False, look=0, order=1)
class Even(Settings):
    """Uniform weights, the prior q, or a point of the static front, which becomes q."""

    prior: Optional[list[float]] = key(None, DISTRIBUTION, per_domain=True)  # noqa: UP045
    point: Optional[int] = key(None, COUNT_OR_ZERO)  # noqa: UP045

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
