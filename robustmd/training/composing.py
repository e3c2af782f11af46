"""What Hydra says of a config, said in one line; and how many runs a sweep has."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from hydra import compose, initialize_config_module
from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from robustmd.errors import UserError
from robustmd.settings import GROUPS
from robustmd.typed import unknown_key

NAMES = ("method.domain", "data.unseen", "data.classes", "data.domain")
_VALUES = re.compile(r"""'(?:\\.|[^'])*'|"(?:\\.|[^"])*"|[^,\[\]()'"]+""")  # of a list or a sweep
_NO_TEXT = re.compile(r"[+-]?([\d._]+(e[+-]?\d+)?|inf|nan)|true|false|null", re.ASCII | re.I)


def composed_error(error: Exception, arguments: Sequence[str]) -> str:
    """One line for an error of Hydra's or OmegaConf's while it composed the config."""
    text = f"{error}\n{error.__cause__ or ''}"
    key = re.search(r"full_key: (\S+)", text)
    if "is not in struct" in text and key:
        siblings, where = _siblings(key[1], arguments)
        return unknown_key(key[1], siblings, where)
    option = re.search(r"Could not find '(\w+)/([^']*)'", text)
    if option:
        listed = text.partition("Available options in ")[2].partition("\nConfig search path")[0]
        names = ", ".join(listed.split("\n\t")[1:]).strip()
        return f"{option[1]}={option[2]}: no such option; allowed: {names}"
    group = re.search(r"Could not override '([^']+)'", text)
    if group:
        top = [*GROUPS, "seed", "force", "resume", "logging", "checkpoint", "paths"]
        return unknown_key(group[1].partition("@")[0], top)
    value = _value_error(error, text, arguments)
    if value is not None:
        return value
    said = " ".join(line.strip() for line in text.splitlines()[:2] if line.strip())
    return said or f"{' '.join(arguments)}: makes no config; settings are key=value"


def _value_error(error: Exception, text: str, arguments: Sequence[str]) -> str | None:
    """One line, where what follows a key's "=" is at fault."""
    if isinstance(error, OSError):
        return f"{_short(' '.join(arguments))}: makes no config ({error.strerror})"
    if "requires --multirun" in text or "Ambiguous value for argument" in text:
        given = _short(text.split("'")[1])
        return (
            f"{given}: several values are a sweep, one run each: write "
            "-m right after train; one list is key=[a,b], text with a comma 'key=\"a,b\"'"
        )
    if "integer string conversion" in text:
        return f"{_short(' '.join(arguments))}: a number has too many digits"
    if isinstance(error, OverrideParseException):
        return (
            f"{error.override}: is no setting; a setting is key=value, and a value with spaces, "
            "commas or letters beyond ASCII is written 'key=\"value\"'"
        )
    return None


def _short(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _siblings(key: str, arguments: Sequence[str]) -> tuple[list[str], str]:
    """The keys beside `key` in the config without the override that failed, and whose they are."""
    prefix = key.rpartition(".")[0]
    try:
        node = _compose([o for o in _overrides(arguments) if _is_group(o)])
        parent = OmegaConf.select(node, prefix) if prefix else node
    except (HydraException, OmegaConfBaseException, ValueError):
        parent = None
    if not isinstance(parent, DictConfig):
        return [], ""
    where = f" for {prefix}={parent.name}" if "name" in parent else ""
    names = [str(name) for name in parent if name not in ("hydra", "name")]
    return [f"{prefix}.{name}" if prefix else name for name in names], where


def check_arguments(arguments: Sequence[str]) -> None:
    """Refuse an unknown flag with one line, before Hydra prints its usage, and a key taken away:
    none may be missing.

    Raises:
        UserError: naming it.
    """
    parser = get_args_parser()
    known = {option for action in parser._actions for option in action.option_strings}
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag.startswith("-") and flag not in known and not re.fullmatch(r"-[a-z]+", flag):
            flags = ", ".join(sorted(option for option in known if option.startswith("--")))
            raise UserError(f"{flag}: no such flag; settings are key=value, flags are {flags}")
        if flag.startswith("~") and not flag.startswith("~hydra"):
            raise UserError(f"{flag}: no key can be taken away; give it a value: {flag[1:]}=…")


def sweep_size(arguments: Sequence[str]) -> int | None:
    """How many runs these arguments ask for; None for a single run, or where it cannot be told.

    Raises:
        UserError: an interval, and no sweeper that draws from one.
    """
    try:
        overrides = _overrides(arguments)
        swept = {o.key_or_group: o for o in overrides if o.is_sweep_override()}
        composed = _compose([o for o in overrides if not o.is_sweep_override()], with_hydra=True)
        given = {o.key_or_group for o in overrides}
        params = composed.hydra.sweeper.get("params") or {}
        for key, values in params.items():
            if key not in given:
                swept[key] = _parse([f"{key}={values}"])[0]
        is_basic = str(composed.hydra.sweeper.get("_target_")).endswith("BasicSweeper")
        multirun = str(composed.hydra.mode).endswith("MULTIRUN") or bool(
            {"-m", "--multirun"} & set(arguments)
        )
    except Exception:  # composing for the run itself says what is wrong
        return None
    if not multirun:
        return None
    sweeps = [override for override in swept.values() if override.is_sweep_override()]
    interval = next((o.input_line for o in sweeps if o.is_interval_sweep()), None)
    if interval is None:
        return math.prod(len(list(override.sweep_string_iterator())) for override in sweeps)
    if is_basic:
        raise UserError(
            f"{interval}: an interval takes a sweeper that draws from it (hydra/sweeper=NAME, one "
            "that is installed); without one list the values: key=a,b,c"
        )
    return None


def with_keys_of_swept_groups(arguments: Sequence[str]) -> list[str]:
    """The arguments, with `method.lam=0.1` as `method.lam=choice(0.1)` where `method` is swept.

    Hydra first composes a sweep without what is swept, and would look for `lam` in the default
    method. A value in a sweep of one is looked for in each job's own method.
    """
    if not {"-m", "--multirun"} & set(arguments):
        return list(arguments)
    try:
        swept = {o.key_or_group for o in _overrides(arguments) if o.is_sweep_override()}
        plain = {o.input_line for o in _overrides(arguments) if not o.is_sweep_override()}
    except HydraException:
        return list(arguments)

    def rewritten(argument: str) -> str:
        key, _, value = argument.partition("=")
        inside = "." in key and key.partition(".")[0] in swept and argument in plain
        return f"{key}=choice({value})" if inside else argument

    return [rewritten(argument) for argument in arguments]


def with_names_as_text(arguments: Sequence[str]) -> list[str]:
    """The arguments, with `data.unseen=[1e5]` as `data.unseen=['1e5']`: a name is what was typed.

    Hydra would read a number (100000.0), a truth value or null. A whole number is its own text.
    """

    def rewritten(argument: str) -> str:
        key, sign, value = argument.partition("=")
        return key + sign + _VALUES.sub(_as_text, value) if key.lstrip("+") in NAMES else argument

    return [rewritten(argument) for argument in arguments]


def _as_text(match: re.Match[str]) -> str:
    text = match[0].strip()
    is_other = _NO_TEXT.fullmatch(text) and not re.fullmatch(r"-?[1-9]\d*|0", text)
    return match[0].replace(text, f"'{text}'") if is_other else match[0]


def composed_config(arguments: Sequence[str]) -> DictConfig:
    """The config that these overrides give, for a command that is not `train`.

    Raises:
        UserError: one line, as `composed_error` says it.
    """
    try:
        return _compose(_parse(with_names_as_text(arguments)))
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise UserError(composed_error(error, arguments)) from None


def _overrides(arguments: Sequence[str]) -> list[Override]:
    return _parse([a for a in arguments if "=" in a and not a.startswith("-")])


def _parse(texts: Sequence[str]) -> list[Override]:
    return OverridesParser.create().parse_overrides(list(texts))


def _is_group(override: Override) -> bool:
    return override.key_or_group in GROUPS and not override.is_sweep_override()


def _compose(overrides: Sequence[Override], *, with_hydra: bool = False) -> DictConfig:
    lines = [o.input_line for o in overrides if o.input_line is not None]
    with initialize_config_module("robustmd.conf", version_base="1.3"):
        return compose("config", overrides=lines, return_hydra_config=with_hydra)
