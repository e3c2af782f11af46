"""Which run is which: what can change a number, a hash of it, and the folder that follows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from robustmd.config.ranges import facts_of
from robustmd.config.settings import DATA, OPTIONS, SECTIONS, defaults_of

NUMBER_CHANGING = (*OPTIONS, "training", "evaluation")
# keys that are no more, by the default that runs recorded
REMOVED: dict[str, dict[str, Any]] = {"data": {"shares": "equal"}, "method": {"point": None}}


def number_changing(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a config (as plain data) that can change a number: the run's identity.

    data, backbone, method, training, evaluation, and the precision where it is not fp32. Keys equal
    to their recorded default are left out, so that a key added later does not orphan old runs. Not
    in it: seed (a level of its own), paths, device, threads, logging, checkpoint.
    """
    identity = {}
    for group in NUMBER_CHANGING:
        schema = OPTIONS[group][config[group]["name"]] if group in OPTIONS else SECTIONS[group]
        defaults = {**defaults_of(schema), **REMOVED.get(group, {})}
        identity[group] = _without(config[group], defaults)
    precision = config["runtime"].get("precision", "fp32")  # runs before it was a key: fp32
    return identity if precision == "fp32" else identity | {"runtime": {"precision": precision}}


def identity_of(config: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    """`number_changing`, and `by_content` of it."""
    return by_content(number_changing(config), read)


def by_content(identity: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    """An identity with what the named files hold in place of where they lie.

    read: data_fingerprint and weights_sha256, as environment.json has them; without them a place
    stands for what lies there.
    """
    data, backbone = identity["data"], identity["backbone"]
    fingerprint, weights = read.get("data_fingerprint"), read.get("weights_sha256")
    places = places_of(data["name"])
    if fingerprint and not data.keys().isdisjoint(places):
        kept = {key: value for key, value in data.items() if key not in places}
        data = {**kept, "fingerprint": fingerprint}
    if weights and backbone.get("weights", "none") != "none":
        backbone = {**backbone, "weights": weights}
    return {**identity, "data": data, "backbone": backbone}


def places_of(data: str) -> frozenset[str]:
    """Those keys of a data set that say where it lies."""
    items = DATA[data].model_fields if data in DATA else {}
    return frozenset(name for name, item in items.items() if facts_of(item).get("place"))


def config_hash(identity: Mapping[str, Any]) -> str:
    """8 hex digits of sha256 over the canonical form: sorted keys, 0 and 0.0 the same number."""
    text = json.dumps(canonical(identity), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def run_folder(outputs: Path, identity: Mapping[str, Any], seed: int) -> Path:
    """`<outputs>/<data>/<method>/<8 hex>/seed=<n>`; of a model from Python `<class>_<8 hex>`."""
    data, method = identity["data"]["name"], identity["method"]["name"]
    made_by, sign, _ = identity.get("backbone", {}).get("object", "").rpartition("_")
    return outputs / data / method / f"{made_by}{sign}{config_hash(identity)}" / f"seed={seed}"


def canonical(value: Any) -> Any:
    """The value with every number as a float, so that 0 equals 0.0; truth values stay."""
    if isinstance(value, Mapping):
        return {str(key): canonical(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(inner) for inner in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) + 0.0  # which makes -0.0 the same as 0
    return value


def flattened(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of all that a mapping in mappings holds; `key` is its own."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from flattened(inner, f"{key}.{name}")
    else:
        yield key, value


def _without(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in values.items():
        default = defaults.get(key)
        if isinstance(value, Mapping):
            inner = _without(value, default or {})
            if inner:
                kept[key] = inner
        elif key == "name" or key not in defaults or value != default:
            kept[key] = value
    return kept
