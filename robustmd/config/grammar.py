"""Settings as they are typed, key=value, read by Hydra's grammar."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException

from robustmd.errors import UserError

HYDRAS = ("launcher", "searchpath", "sweep.dir", "job.env_set")  # its keys that do something here
NAMES = ("method.domain", "data.unseen", "data.classes", "data.domain")  # text, whatever it is
_VALUES = re.compile(r"""'(?:\\.|[^'])*'|"(?:\\.|[^"])*"|[^,\[\]()'"]+""")  # of a list or a sweep
_NO_TEXT = re.compile(r"[+-]?([\d._]+(e[+-]?\d+)?|inf|nan)|true|false|null", re.ASCII | re.I)


def is_hydras(text: str) -> bool:
    """Whether an argument is of Hydra's own keys, for its launchers."""
    return re.match(r"[+~]*hydra[./]", text) is not None


def parsed(arguments: Iterable[str]) -> dict[str, Override]:
    """The arguments, key=value, by their keys; the last one of a key counts.

    Raises UserError: what is no setting, and a key of Hydra's that would do nothing here.
    """
    found = {}
    for argument in arguments:
        override = _parsed(argument)
        if is_hydras(argument) and not re.match(rf"[+]*hydra[./]({'|'.join(HYDRAS)})", argument):
            raise UserError(
                f"{argument}: does nothing here; the runs go to paths.outputs=FOLDER; of Hydra's "
                f"keys there are hydra.{', '.join(HYDRAS)}"
            )
        found[override.key_or_group] = override
    return found


@lru_cache(maxsize=4096)
def _parsed(argument: str) -> Override:
    key, sign, value = argument.partition("=")
    if key.lstrip("+") in NAMES:
        value = _VALUES.sub(_as_text, value)
    try:
        override = _grammar().parse_override(f"{key}{sign}{value}")
    except (HydraException, ValueError) as error:
        if "integer string conversion" in str(error):
            raise UserError(f"{shortened(argument)}: a number has too many digits") from None
        raise UserError(
            f"{shortened(argument)}: is no setting; a setting is key=value, a value with spaces, "
            "commas or letters beyond ASCII is written 'key=\"value\"'"
        ) from None
    if override.type == OverrideType.DEL:
        raise UserError(f"{argument}: no key can be taken away; give it a value: {key[1:]}=…")
    return override


_grammar = cache(OverridesParser.create)


def _as_text(match: re.Match[str]) -> str:
    """A name is what was typed, where the grammar would read a number (1e5 as 100000.0), a truth
    value or null; a whole number is its own text."""
    text = match[0].strip()
    is_other = _NO_TEXT.fullmatch(text) and not re.fullmatch(r"-?[1-9]\d*|0", text)
    return match[0].replace(text, f"'{text}'") if is_other else match[0]


def shortened(text: str) -> str:
    """What a message quotes of what was typed."""
    return text if len(text) <= 200 else f"{text[:200]}…"
