"""`method=oracle`: Mixture-Oracle, Chen et al. (2017) as the paper runs it."""

from __future__ import annotations

from typing import Optional

from robustmd import adversary
from robustmd.config.ranges import COUNT, DISTRIBUTION, POSITIVE, log
from robustmd.registry import MethodFacts, Settings, key, method


@method("oracle", look=2, order=2)
class Oracle(Settings):
    """Rounds of `every` iterations at fixed weights; `eta` null: sqrt(log K/(2R)), R rounds."""

    every: int = key(100, COUNT)
    eta: Optional[float] = key(None, POSITIVE, tune=log(0.02, 2))  # noqa: UP045
    prior: Optional[list[float]] = key(None, DISTRIBUTION, per_domain=True)  # noqa: UP045

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        rounds = max(1, facts.iterations // self.every)
        return adversary.OracleRounds(
            facts.num_domains, rounds, eta=self.eta, every=self.every, prior=self.prior
        )
