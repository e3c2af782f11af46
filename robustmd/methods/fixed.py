"""Fixed weights: the baselines that a report compares with."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

from robustmd import adversary
from robustmd.config.ranges import DISTRIBUTION
from robustmd.errors import UserError, listed
from robustmd.registry import FinishedRuns, Method, MethodFacts, key, method


@method("even", learns=False, baseline=1, look=0, order=1)
class Even(Method):
    """Mixture-Even: fixed weights, uniform or given."""

    prior: list[float] | None = key(None, DISTRIBUTION, "q; null: uniform", per_domain=True)

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.Fixed(facts.num_domains, prior=self.prior)


@method("erm", learns=False, baseline=2, look=8, order=8)
class Erm(Method):
    """Fixed weights: the domains' shares of the training examples."""

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        if facts.sizes is None:
            raise ValueError("the weights are the domains' sizes, which are not known here")
        return adversary.Fixed(facts.num_domains, prior=[n / sum(facts.sizes) for n in facts.sizes])


@method("individual", learns=False, fair=False, baseline=3, order=0)
class Individual(Method):
    """Individual_k: trained on one domain and measured on all."""

    domain: int | str = key(
        0, help="k: a domain's name, or where none is called so its index from 0"
    )

    def trained(self, domains: Sequence[str]) -> tuple[str, ...]:
        """The domain that is called so, else the one at that index, which counts from 0."""
        name = normalize("NFC", str(self.domain))  # as the data sets write theirs
        indices = [str(k) for k in range(len(domains))]
        if name in domains:
            return (name,)
        if name in indices:
            return (domains[indices.index(name)],)
        raise UserError(
            f"method.domain={self.domain}: must be one of {listed(domains)} "
            f"or an index from 0 to {len(domains) - 1}"
        )

    def settled(self, trained: Sequence[str]) -> Individual:
        return self.model_copy(update={"domain": trained[0]})

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        return adversary.Fixed(facts.num_domains)


@method("retrain", learns=False, fair=False, look=17, order=17)
class Retrain(Method):
    """Fixed weights: those that another run had on average."""

    run: str | None = key(None, help="a folder of finished runs of one configuration: their p̄")
    weights: list[float] | None = key(
        None, DISTRIBUTION, "p itself, in place of a run", per_domain=True
    )

    def check(self) -> None:
        if None not in (self.run, self.weights):
            raise UserError(
                f"method.run={self.run}: method.weights is given as well; leave one out"
            )

    def filled(self, runs: FinishedRuns) -> tuple[Retrain, str]:
        if self.weights is not None:
            return self, ""
        weights, note = runs.mean_weights(self.run)
        return self.model_copy(update={"run": None, "weights": weights}), note

    def build(self, facts: MethodFacts) -> adversary.Adversary:
        if self.weights is None:
            raise ValueError("method.weights=null: must be given, or come from method.run")
        return adversary.Fixed(facts.num_domains, prior=self.weights)
