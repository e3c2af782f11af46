"""The fair protocol's rows: as many configurations for every method, drawn from its own ranges.

docs/fair.md says how they are drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from robustmd.config.ranges import Tune, facts_of
from robustmd.config.settings import METHODS
from robustmd.errors import UserError

MOST = 10_000  # configurations of a method
Row = dict[str, Any]


def drawn_rows(tune: Mapping[str, Any], num_domains: int) -> list[Row]:
    """The rows of `sweep.tune`: individual models first, then method by method.

    Args:
        tune: `configurations` >= 1 of each method; `seed` >= 0; `every_method`, ranges of keys that
            all methods tune, as {training.learning_rate: {log: [0.005, 0.1]}}. With `alone` >= 1
            the rows of a method are its defaults, then so many values of these keys, its own at
            their defaults, then `configurations` points of all keys at once, which are its alone.
        num_domains: K; `regret` takes its f* from individual models of all of them.

    Raises:
        UserError: it is none.
    """
    try:
        count, seed = int(tune["configurations"]), int(tune["seed"])
        alone = int(tune.get("alone", 1))
        common = {
            key: Tune(kind, tuple(ends))
            for key, of in tune.get("every_method", {}).items()
            for kind, ends in of.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        count = 0
    if not (1 <= count <= MOST and 1 <= alone <= MOST and seed >= 0):
        raise UserError(
            f"sweep.tune={dict(tune)}: must be {{configurations: 1 to {MOST}, seed: 0 or "
            f"more, every_method: {{KEY: {{log: [LOW, HIGH]}}}}}}, and perhaps alone: 1 to {MOST}"
        )
    methods: list[tuple[str, Row, dict[str, Tune]]] = [
        *(("individual", {"method.domain": k}, {}) for k in range(num_domains)),
        *((name, {}, own_ranges(name)) for name in METHODS if METHODS.flag(name, "fair")),
    ]
    rows = []
    for method, fixed, own in methods:
        ranges = {**common, **own}
        if "alone" in tune:
            joint = sobol(method, ranges, count, seed)
            points = [{}, *_each_key_drawn(common, alone, seed), *joint]
        else:
            points = _each_key_drawn(ranges, count, seed)
        rows += [{"method": method, **fixed, **point} for point in points]
    return rows


def own_ranges(method: str) -> dict[str, Tune]:
    """key -> where it is drawn from, as the method's class says."""
    return {
        f"method.{name}": facts_of(item)["tune"]
        for name, item in METHODS[method].model_fields.items()
        if facts_of(item).get("tune") is not None
    }


def _each_key_drawn(ranges: Mapping[str, Tune], count: int, seed: int) -> list[Row]:
    by_key = {key: draws(key, of, count, seed) for key, of in ranges.items()}
    return [{key: values[i] for key, values in by_key.items()} for i in range(count)]


def draws(key: str, of: Tune, count: int, seed: int) -> list[Any]:
    """One value for each of `count` configurations.

    x_i = F⁻¹((π(i) + u)/count) with a permutation π and one u, uniform in [0, 1): equally far apart
    from a random start, in random order, so that few draws cover the range. Two digits are kept.

    Args:
        key: "method.lam"; the stream is its and the range's own.
        of: the range.
        count: >= 1.
        seed: >= 0.
    """
    rng = _stream(f"{key} {of.kind} {list(of.ends)}", seed)
    return [_value(of, share) for share in (rng.permutation(count) + rng.random()) / count]


def sobol(method: str, ranges: Mapping[str, Tune], count: int, seed: int) -> list[Row]:
    """The first `count` >= 1 points of a scrambled Sobol sequence over all `ranges` at once.

    Its scrambling is the method's own, so that no two methods share their pairs. Two digits are
    kept. Another release of SciPy may scramble in another way.
    """
    from scipy.stats import qmc  # noqa: PLC0415 - other sweeps need none

    if not ranges:
        return []
    sequence = qmc.Sobol(len(ranges), seed=_stream(f"sobol {method} {list(ranges)}", seed))
    points = sequence.random_base2((count - 1).bit_length())[:count]
    keys = list(ranges.items())
    return [{k: _value(of, x) for (k, of), x in zip(keys, one, strict=True)} for one in points]


def _stream(name: str, seed: int) -> Any:
    import numpy as np  # noqa: PLC0415 - other sweeps need none

    entropy = hashlib.sha256(name.encode()).digest()[:8]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *entropy])))


def _value(of: Tune, share: float) -> Any:
    """What lies at that share, in [0, 1), of the range."""
    if of.kind == "choice":
        return of.ends[int(share * len(of.ends))]
    low, high = map(float, of.ends)
    if of.kind == "uniform":
        return float(f"{low + share * (high - low):.2g}")
    return float(f"{low * (high / low) ** share:.2g}")
