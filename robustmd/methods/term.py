"""`method=term`: Li et al. (2021), tilted losses."""

from __future__ import annotations

from typing import Optional

from robustmd import adversary
from robustmd.config.ranges import DISTRIBUTION, NUMBER, grid, log
from robustmd.registry import MethodFacts, Settings, key, method


@method("term", look=11, order=11)
class Term(Settings):
    """The tilt t and the prior q."""

    t: float = key(1.0, NUMBER, tune=log(0.1, 100), grid=grid(1.0, 4.0, 16.0, 64.0))
    prior: Optional[list[float]] = key(None, DISTRIBUTION, per_domain=True)  # noqa: UP045

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.Tilted(facts.num_domains, self.t, prior=self.prior)
