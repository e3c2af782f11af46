"""What a run was trained with, as flat keys: which runs belong together, and how rows differ."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from robustmd.config.identity import canonical, places_of
from robustmd.config.settings import OPTIONS, SECTIONS
from robustmd.runs.run import Run

NUMBER_CHANGING = ("data", "backbone", "method", "training", "evaluation")
NO_NUMBER = {"evaluation.predictions", "evaluation.metrics"}
FINGERPRINT = "data fingerprint"
FILES = "data.files"  # the fingerprint too, where the settings name the files
UNSET = "unset"
SYMBOLS = {"method.lam": "λ", "method.mu": "μ", "method.nu": "ν"}

Settings = Mapping[str, Any]


def settings_of(run: Run) -> dict[str, Any]:
    """All that can change a number but the seed: {"method.lam": 0.1, ...}, and the data's bytes.

    Numbers are floats (0 is 0.0), lists text, so that values compare and hash. A key that the run
    does not have, because it is older than the key, has its recorded default.
    """
    flat: dict[str, Any] = {}
    for group in NUMBER_CHANGING:
        chosen = run.config.get(group, {})
        name = chosen.get("name") if isinstance(chosen, Mapping) else None
        written: dict[str, Any] = {}
        _flatten(canonical(chosen), group, written)
        recorded = _recorded_defaults(group, name if isinstance(name, str) else "")
        flat |= {**written, **{key: recorded[key] for key in recorded if key not in written}}
    for key in NO_NUMBER:
        flat.pop(key, None)
    if run.domain is not None:
        flat["method.domain"] = run.domain
    runtime = run.config.get("runtime")
    precision = runtime.get("precision") if isinstance(runtime, Mapping) else None
    flat["runtime.precision"] = str(precision or "fp32")
    flat[FINGERPRINT] = str(run.environment.get("data_fingerprint", "unknown"))
    return _without_places(flat, run.environment)


def _without_places(flat: dict[str, Any], environment: Mapping[str, Any]) -> dict[str, Any]:
    """What files held in place of where they lay: the same elsewhere is the same configuration."""
    places = {f"data.{key}" for key in places_of(str(flat.get("data.name")))}
    if environment.get("data_fingerprint") and any(flat.get(key) for key in places):
        flat = {key: value for key, value in flat.items() if key not in places}
        flat |= {FILES: flat[FINGERPRINT], FINGERPRINT: f"that of {FILES}"}
    weights = environment.get("weights_sha256")
    if weights and flat.get("backbone.weights") not in (None, "none", "imagenet"):
        flat["backbone.weights"] = f"sha256 {weights}"[:20]
    return flat


@functools.cache
def _recorded_defaults(group: str, name: str) -> Mapping[str, Any]:
    """Of one option of a group, or of a section; nothing for names that are not ours."""
    schema = OPTIONS[group].get(name) if group in OPTIONS else SECTIONS.get(group)
    flat: dict[str, Any] = {}
    if schema is not None:
        _flatten(canonical(dataclasses.asdict(schema())), group, flat)
    return flat


def _flatten(value: Any, prefix: str, flat: dict[str, Any]) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _flatten(inner, f"{prefix}.{key}", flat)
    else:
        # repr tells True from 1.0 and keeps a list hashable
        flat[prefix] = value if isinstance(value, str | float | None) else repr(value)


def frozen(settings: Settings) -> tuple[tuple[str, Any], ...]:
    """Hashable form."""
    return tuple(sorted(settings.items()))


def protocol(settings: Settings) -> Settings:
    """What two methods must share to be compared: all but the method itself and how often and on
    how much of the training set it was measured before the end."""
    apart = ("method.", "evaluation.")
    return {key: value for key, value in settings.items() if not key.startswith(apart)}


def differing(many: Iterable[Settings]) -> list[str]:
    """Keys that have not the same value everywhere, in order of first appearance."""
    settings = list(many)
    keys = dict.fromkeys(key for one in settings for key in one)
    return [key for key in keys if len({one.get(key, UNSET) for one in settings}) > 1]


def describe(settings: Settings, keys: Iterable[str]) -> str:
    """ "λ=0.1 momentum=0" for the keys given."""
    pairs = ((short_key(key), shown_value(settings.get(key, UNSET), key)) for key in keys)
    return " ".join(f"{key}={value}" for key, value in pairs)


def short_key(key: str) -> str:
    """The key as a label shows it: "λ", "iterations", "data.validation"."""
    if key in SYMBOLS:
        return SYMBOLS[key]
    group, _, rest = key.partition(".")
    return rest if group in ("method", "training") else key


def shown_value(value: Any, key: str) -> str:
    """The value likewise, as the command line has it; of a fingerprint the first 8 digits."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)[:8] if key in (FINGERPRINT, FILES) else str(value)
