"""Which run is which: a hash of what can change a number, and the folder that follows from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def config_hash(identity: Mapping[str, Any]) -> str:
    """8 hex digits of sha256 over the canonical form: sorted keys, 0 and 0.0 the same number.

    Args:
        identity: the part of the resolved config that can change a number, as plain data, keys
            equal to their recorded default left out.
    """
    text = json.dumps(canonical(identity), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def canonical(value: Any) -> Any:
    """The value with every number as a float, so that 0 equals 0.0; truth values stay."""
    if isinstance(value, Mapping):
        return {str(key): canonical(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(inner) for inner in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) + 0.0  # which makes -0.0 the same as 0
    return value


def run_folder(outputs: Path, identity: Mapping[str, Any], seed: int) -> Path:
    """`<outputs>/<data>/<method>/<8 hex>/seed=<n>`."""
    data, method = identity["data"]["name"], identity["method"]["name"]
    return outputs / data / method / config_hash(identity) / f"seed={seed}"
