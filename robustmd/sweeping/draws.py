"""The fair protocol's rows: as many configurations for every method, drawn from its own ranges.

docs/fair.md says how they are drawn.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from robustmd.config.ranges import Tune
from robustmd.config.settings import METHODS
from robustmd.errors import UserError

MOST = 10_000  # configurations of a method


def drawn_rows(tune: Mapping[str, Any], num_domains: int) -> list[dict[str, Any]]:
    """The rows of `hydra.sweeper.tune`: individual models first, then method by method.

    Args:
        tune: `configurations` >= 1 of each method; `seed` >= 0; `every_method`, ranges of keys that
            all methods tune, as {training.learning_rate: {log: [0.005, 0.1]}}.
        num_domains: K; `regret` takes its f* from individual models of all of them.

    Raises:
        UserError: it is none.
    """
    try:
        count, seed = int(tune["configurations"]), int(tune["seed"])
        common = {
            key: Tune(kind, tuple(ends))
            for key, of in tune.get("every_method", {}).items()
            for kind, ends in of.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        count = 0
    if not (1 <= count <= MOST and seed >= 0):
        raise UserError(
            f"hydra.sweeper.tune={dict(tune)}: must be {{configurations: 1 to {MOST}, seed: 0 or "
            "more, every_method: {KEY: {log: [LOW, HIGH]}}}"
        )
    rows = []
    for k in range(num_domains):
        rows += _configurations("individual", common, count, seed, {"method.domain": k})
    for name in METHODS:
        if METHODS.flag(name, "fair"):
            rows += _configurations(name, common | own_ranges(name), count, seed, {})
    return rows


def own_ranges(method: str) -> dict[str, Tune]:
    """key -> where it is drawn from, as the method's class says."""
    return {
        f"method.{item.name}": item.metadata["tune"]
        for item in dataclasses.fields(METHODS[method])
        if item.metadata.get("tune") is not None
    }


def _configurations(
    method: str, ranges: Mapping[str, Tune], count: int, seed: int, fixed: Mapping[str, Any]
) -> list[dict[str, Any]]:
    by_key = {key: draws(key, of, count, seed) for key, of in ranges.items()}
    return [
        {"method": method, **fixed, **{key: values[i] for key, values in by_key.items()}}
        for i in range(count)
    ]


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
    import numpy as np  # noqa: PLC0415 - other sweeps need none

    name = hashlib.sha256(f"{key} {of.kind} {list(of.ends)}".encode()).digest()[:8]
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *name])))
    shares = (rng.permutation(count) + rng.random()) / count
    if of.kind == "choice":
        return [of.ends[int(share * len(of.ends))] for share in shares]
    low, high = map(float, of.ends)
    if of.kind == "uniform":
        return [float(f"{low + share * (high - low):.2g}") for share in shares]
    return [float(f"{low * (high / low) ** share:.2g}") for share in shares]
