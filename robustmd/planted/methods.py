"""The methods compared, and the budget that each has: 8 configurations."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustmd.adversary import Adversary
from robustmd.methods import build_adversary
from robustmd.registry import METHODS, MethodFacts

_LAM = tuple({"lam": lam} for lam in (0.01, 0.03, 0.1, 0.3))
_ETA = tuple({"eta": eta} for eta in (0.01, 0.03, 0.1, 0.3))
_RATES = (0.3, 1.0)

OWN_VALUES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "erm": ({},),
    "even": ({},),
    "term": tuple({"t": t} for t in (1.0, 4.0, 16.0, 64.0)),
    "cvar": tuple({"alpha": alpha} for alpha in (0.2, 0.4, 0.6, 0.8)),
    "topk": tuple({"share": share} for share in (0.0, 0.25, 0.5, 0.75)),
    "vrex": tuple({"beta": beta} for beta in (1.0, 3.0, 10.0, 30.0)),
    "minimax": tuple({"step": "constant", **eta} for eta in _ETA),
    "afl": _ETA,
    "groupdro": tuple(
        {"eta": eta, "adjustment": adjustment} for eta in (0.03, 0.3) for adjustment in (0.0, 1.0)
    ),
    "opt": _LAM,
    "optimistic": _LAM,
    "ot": _LAM,
    "kl": _LAM,
    "regret": _LAM,
}
"""Each method's values of its own keys, as `method.<key>=` takes them; for topk the share of the
domains, k = max(1, ⌈share K⌉)."""

_RATES_WITHOUT_KEYS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Method:
    """A method with its configurations: every one of its own values with every learning rate."""

    name: str
    own: tuple[Mapping[str, Any], ...]
    rates: tuple[float, ...]

    @property
    def budget(self) -> int:
        """How many configurations."""
        return len(self.own) * len(self.rates)

    def describe(self, index: int) -> str:
        """Configuration number `index` < budget in words: own value first, then the rate."""
        own, rate = divmod(index, len(self.rates))
        words = [f"{key}={value:g}" for key, value in self.own[own].items() if key != "step"]
        return ", ".join([*words, f"lr={self.rates[rate]:g}"])

    def adversary(
        self,
        own: Mapping[str, Any],
        num_domains: int,
        iterations: int,
        *,
        sizes: Sequence[int],
        alone: Sequence[float],
    ) -> Adversary:
        """The package's adversary of `method.name`; `alone` is f*, which regret asks for."""
        keys = dict(own)
        if "share" in keys:
            keys["k"] = max(1, math.ceil(keys.pop("share") * num_domains))
        if self.name == "regret":
            keys["reference"] = list(alone)
        settings = METHODS[self.name](**keys)
        return build_adversary(settings, MethodFacts(num_domains, iterations, sizes))


METHODS_COMPARED: tuple[Method, ...] = tuple(
    Method(name, tuple(own), _RATES if len(own) > 1 else _RATES_WITHOUT_KEYS)
    for name, own in OWN_VALUES.items()
)
