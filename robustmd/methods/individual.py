"""`method=individual`."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

from robustmd import adversary
from robustmd.errors import UserError, listed
from robustmd.registry import Method, MethodFacts, key, method


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
