"""The methods compared, and the budget that each has: 8 configurations."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from robustmd.adversary import Adversary, Fixed, NoRegularizer
from robustmd.config.ranges import Grid
from robustmd.methods import build_adversary
from robustmd.registry import METHODS, MethodFacts, Settings, baselines

REFERENCE = baselines()[0]
FAMILIES = (
    "fixed weights",
    "no memory: answers the batch",
    "ascent, no regularizer",
    "ascent with a regularizer",
)
_RATES = (0.3, 1.0)
_RATES_WITHOUT_KEYS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class _Alone:
    """f* [K], for methods that ask finished runs for it."""

    losses: Sequence[float]

    def best_losses(self) -> tuple[list[float], str]:
        return list(self.losses), ""


@dataclass(frozen=True)
class Method:
    """A method with its configurations: every one of its own values with every learning rate."""

    schema: type[Settings]  # and no name: another process then imports the user's own too
    own: tuple[Mapping[str, Any], ...]
    rates: tuple[float, ...]

    @property
    def name(self) -> str:
        return self.schema.name

    def configurations(self) -> list[str]:
        """Each in words, its own value first, then the rate, which changes fastest."""
        found = []
        for own in self.own:
            words = [
                f"{'share' if self._is_share(key) else key}={value:g}"
                for key, value in own.items()
                if not isinstance(value, str)  # a name is the same in all of them
            ]
            found += [", ".join([*words, f"lr={rate:g}"]) for rate in self.rates]
        return found

    def adversary(
        self,
        own: Mapping[str, Any],
        iterations: int,
        sizes: Sequence[int] = (1, 1),
        alone: Sequence[float] = (0.0, 0.0),
    ) -> Adversary:
        """The package's, with these of its `own` values; n_k are `sizes`, f* is `alone`."""
        keys = {
            key: max(1, math.ceil(value * len(sizes))) if self._is_share(key) else value
            for key, value in own.items()
        }
        runs: Any = _Alone(alone)
        settings, _ = self.schema(**keys).filled(runs)
        return build_adversary(settings, MethodFacts(len(sizes), iterations, sizes))

    def example(self) -> Adversary:
        """One of its adversaries, for what all of them share."""
        return self.adversary(self.own[0], 1)

    def family(self) -> str:
        """One of `FAMILIES`."""
        adversary = self.example()
        has_memory = set(adversary.state_dict()) > set(Fixed(2).state_dict())
        if not METHODS.flag(self.name, "learns"):
            return FAMILIES[0]
        if adversary.weighs == "current" and not has_memory:
            return FAMILIES[1]
        regularizer = getattr(adversary, "regularizer", None) or NoRegularizer()
        return FAMILIES[2 if isinstance(regularizer, NoRegularizer) else 3]

    def _is_share(self, key: str) -> bool:
        return _grids(self.schema)[key].shares


def methods_compared() -> tuple[Method, ...]:
    """Those that have values to compare or nothing to learn, family by family."""
    methods = []
    for name, schema in METHODS.items():
        grids = _grids(schema)
        if grids:
            values = product(*(grid.values for grid in grids.values()))
            own = tuple(dict(zip(grids, each, strict=True)) for each in values)
            methods.append(Method(schema, own, _RATES))
        elif METHODS.flag(name, "fair") and not METHODS.flag(name, "learns"):
            methods.append(Method(schema, ({},), _RATES_WITHOUT_KEYS))
    return tuple(sorted(methods, key=lambda method: FAMILIES.index(method.family())))


def _grids(schema: type[Settings]) -> dict[str, Grid]:
    found = {key.name: key.metadata.get("grid") for key in fields(schema)}
    return {key: grid for key, grid in found.items() if grid is not None}
