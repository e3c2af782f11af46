"""What a run was trained with, as flat keys: which runs belong together, and how rows differ."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from robustmd.config.identity import NUMBER_CHANGING, canonical, places_of
from robustmd.config.paths import names_weights
from robustmd.config.settings import OPTIONS, SECTIONS
from robustmd.runs.run import Run

NO_NUMBER = tuple(f"evaluation.{key}" for key in ("predictions", "metrics", "keep", "best_by"))
FINGERPRINT = "data fingerprint"
FILES = "data.files"  # the fingerprint too, where the settings name the files
UNSET = "unset"
SYMBOLS = {"method.lam": "λ", "method.mu": "μ", "method.nu": "ν"}


class Settings(dict[str, Any]):
    """{"method.lam": 0.1, ...}: numbers are floats (0 is 0.0), lists text, so that it hashes."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def without(self, *names: str) -> "Settings":
        """All but these keys, and the keys of these groups."""
        kept = (key for key in self if key not in names and key.partition(".")[0] not in names)
        return Settings({key: self[key] for key in kept})

    @property
    def protocol(self) -> "Settings":
        """What two methods must share to be compared: all but the method itself and how often and
        on how much of the training set it was measured before the end."""
        return self.without("method", "evaluation")


def settings_of(run: Run) -> Settings:
    """All that can change a number but the seed, and the data's bytes. A key that the run does not
    have, because it is older than the key, has its recorded default."""
    flat: dict[str, Any] = {}
    for group in NUMBER_CHANGING:
        chosen = run.config.get(group, {})
        name = chosen.get("name") if isinstance(chosen, Mapping) else None
        flat |= _flat(canonical(chosen), group)
        for key, default in _recorded_defaults(group, str(name)).items():
            flat.setdefault(key, default)
    if run.domain is not None:
        flat["method.domain"] = run.domain
    runtime = run.config.get("runtime")
    precision = runtime.get("precision") if isinstance(runtime, Mapping) else None
    flat["runtime.precision"] = str(precision or "fp32")
    flat[FINGERPRINT] = str(run.environment.get("data_fingerprint", "unknown"))
    return _without_places(Settings(flat).without(*NO_NUMBER), run.environment)


def _without_places(flat: Settings, environment: Mapping[str, Any]) -> Settings:
    """What files held in place of where they lay: the same elsewhere is the same configuration."""
    places = [f"data.{key}" for key in places_of(str(flat.get("data.name")))]
    if environment.get("data_fingerprint") and any(flat.get(key) for key in places):
        flat = flat.without(*places)
        flat |= {FILES: flat[FINGERPRINT], FINGERPRINT: f"that of {FILES}"}
    weights = environment.get("weights_sha256")
    if weights and not names_weights(str(flat.get("backbone.weights", "none"))):
        flat["backbone.weights"] = f"sha256 {weights}"[:20]
    return flat


@functools.cache
def _recorded_defaults(group: str, name: str) -> Mapping[str, Any]:
    """Of one option of a group, or of a section; nothing for names that are not ours."""
    schema = OPTIONS[group].get(name) if group in OPTIONS else SECTIONS.get(group)
    return {} if schema is None else _flat(canonical(dataclasses.asdict(schema())), group)


def _flat(value: Any, prefix: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        parts = (_flat(inner, f"{prefix}.{key}") for key, inner in value.items())
        return {key: inner for part in parts for key, inner in part.items()}
    # repr tells True from 1.0 and keeps a list hashable
    return {prefix: value if isinstance(value, str | float | None) else repr(value)}


def differing(many: Iterable[Mapping[str, Any]]) -> list[str]:
    """Keys that have not the same value everywhere, in order of first appearance."""
    settings = list(many)
    keys = dict.fromkeys(key for one in settings for key in one)
    return [key for key in keys if len({one.get(key, UNSET) for one in settings}) > 1]


def describe(settings: Mapping[str, Any], keys: Iterable[str]) -> str:
    """ "λ=0.1 momentum=0" for the keys given."""
    pairs = ((short_key(key), shown_value(settings.get(key, UNSET), key)) for key in keys)
    return " ".join(f"{key}={value}" for key, value in pairs)


def short_key(key: str) -> str:
    """The key as a label shows it: "λ", "iterations", "data.validation"."""
    group, _, rest = key.partition(".")
    return SYMBOLS.get(key, rest if group in ("method", "training") else key)


def shown_value(value: Any, key: str) -> str:
    """The value likewise, as the command line has it; of a fingerprint the first 8 digits."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)[:8] if key in (FINGERPRINT, FILES) else str(value)
