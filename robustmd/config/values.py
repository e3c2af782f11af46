"""Values as they are typed, in the grammar of Hydra's overrides. Light: no hydra."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_/][\w./:+@-]*", re.ASCII)  # what Hydra takes for text without quotes
_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "nan", "inf")


def hydra_value(value: Any) -> str:
    """A value in the grammar of Hydra's overrides: quoted where it would not be taken as it is."""
    if isinstance(value, list | tuple):
        return f"[{','.join(hydra_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        inner = (f"{hydra_value(str(key))}:{hydra_value(item)}" for key, item in value.items())
        return f"{{{','.join(inner)}}}"
    if not isinstance(value, str):
        return "null" if value is None else repr(value).lower()
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # Backslashes count only before a quote and before the ${ of a reference.
    quoted = re.sub(r"(\\*)(\$\{|'|$)", lambda m: m[1] * 2 + "\\" * bool(m[2]) + m[2], value)
    return f"'{quoted}'"
