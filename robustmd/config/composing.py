"""What a user types on its way into Hydra, and what Hydra says of it, in one line."""

from __future__ import annotations

import argparse
import dataclasses
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from hydra._internal.utils import get_args_parser
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from robustmd.config.plugins import conf_folders, config_folder
from robustmd.config.settings import GROUPS, OPTIONS, SECTIONS, Top
from robustmd.config.typed import unknown_key
from robustmd.errors import UserError
from robustmd.registry import FROM_PYTHON

HYDRAS = ("launcher", "sweeper", "sweep.dir", "searchpath", "mode", "callbacks", "job.env_set")
NAMES = ("method.domain", "data.unseen", "data.classes", "data.domain")
_VALUES = re.compile(r"""'(?:\\.|[^'])*'|"(?:\\.|[^"])*"|[^,\[\]()'"]+""")  # of a list or a sweep
_NO_TEXT = re.compile(r"[+-]?([\d._]+(e[+-]?\d+)?|inf|nan)|true|false|null", re.ASCII | re.I)

_check_help: Any = getattr(argparse.ArgumentParser, "_check_help", None)


def _check_text(parser: argparse.ArgumentParser, action: argparse.Action) -> None:
    if isinstance(action.help, str):
        _check_help(parser, action)


if _check_help:  # Python 3.14 checks a flag's help at once; one of Hydra's is text when shown only
    argparse.ArgumentParser._check_help = _check_text  # type: ignore[attr-defined]

# Hydra copies it for each config, with all options in it; what it takes out it copies once more.
ConfigStore.__deepcopy__ = lambda store, _: store  # type: ignore[attr-defined]


def composed_error(error: Exception, arguments: Sequence[str]) -> str:
    """One line for an error of Hydra's or OmegaConf's while it composed the config."""
    text = f"{error}\n{error.__cause__ or ''}"
    option = re.search(r"Could not (?:find|load) '(hydra/\w+|\w+)/([^']*)'", text)
    if option:
        listed = text.partition("Available options in ")[2].partition("\nConfig search path")[0]
        found = [name.strip() for name in listed.split("\n\t")[1:]]
        names = ", ".join(name for name in found if name != FROM_PYTHON)
        names = f"; allowed: {names}" if names else ""
        own = "; one of your own comes with imports=[MODULE]" if option[1] in OPTIONS else ""
        if option[1] == "hydra/launcher":
            own = "; others come with an extra, as docs/clusters.md says"
        if option[1] == "backbone":
            own += ", one of a library's by its name, as backbone=timm backbone.model=NAME"
        return f"{option[1]}={option[2]}: no such option{names}{own}"
    group = re.search(r"Could not override '([^']+)'", text)
    if group:
        top = [*GROUPS, *SECTIONS, *(item.name for item in dataclasses.fields(Top))]
        name = re.split("[@.]", group[1])[0]
        if name in GROUPS:
            return f"{' '.join(arguments)}: {name} takes the name of one option, as {name}=NAME"
        return unknown_key(name, list(dict.fromkeys(top)))
    value = _value_error(error, text, arguments)
    if value is not None:
        return value
    said = " ".join(line.strip() for line in text.splitlines()[:2] if line.strip())
    place = traceback.extract_tb(error.__traceback__)[-1]
    if said and {"hydra", "omegaconf", "antlr4"} & {*Path(place.filename).parts}:
        return said
    where = f"{type(error).__name__} at {place.filename}:{place.lineno}: {said or place.line}"
    return where if said else f"{' '.join(arguments)}: makes no config ({where})"


def _value_error(error: Exception, text: str, arguments: Sequence[str]) -> str | None:
    """One line, where what follows a key's "=" is at fault."""
    if isinstance(error, OSError):
        return f"{_short(' '.join(arguments))}: makes no config ({error.strerror})"
    if "requires --multirun" in text or "Ambiguous value for argument" in text:
        given = _short(text.split("'")[1].removeprefix("++"))
        return (
            f"{given}: several values are a sweep, one run each: write "
            "-m right after train; one list is key=[a,b], text with a comma 'key=\"a,b\"'"
        )
    other_kind = re.search(r"Error merging override \+*(.*)", text)
    if other_kind:
        return f"{_short(other_kind[1])}: the key has values of another kind"
    if "integer string conversion" in text:
        return f"{_short(' '.join(arguments))}: a number has too many digits"
    if isinstance(error, OverrideParseException):
        given = str(error.override).removeprefix("++")
        return (
            f"{given}: is no setting; a setting is key=value, and a value with spaces, "
            "commas or letters beyond ASCII is written 'key=\"value\"'"
        )
    return None


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def check_arguments(arguments: Sequence[str]) -> None:
    """Raises UserError for an unknown flag, before Hydra prints its usage, for a key taken away,
    since none may be missing, and for a key of Hydra's that would do nothing here."""
    parser = get_args_parser()
    known = {option for action in parser._actions for option in action.option_strings}
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag.startswith("-") and flag not in known and not re.fullmatch(r"-[a-z]+", flag):
            flags = ", ".join(sorted(option for option in known if option.startswith("--")))
            raise UserError(f"{flag}: no such flag; settings are key=value, flags are {flags}")
        if flag.startswith("~") and not flag.startswith("~hydra"):
            raise UserError(f"{flag}: no key can be taken away; give it a value: {flag[1:]}=…")
        part, _, name = re.sub(r"^[+~]*hydra[./]", "hydra.", flag).partition(".")
        if part == "hydra" and not name.startswith(HYDRAS):
            raise UserError(
                f"{argument}: does nothing here; the runs go to paths.outputs=FOLDER; of Hydra's "
                f"keys there are hydra.{', '.join(HYDRAS)}"
            )


def as_hydra_reads(arguments: Sequence[str]) -> list[str]:
    """The arguments, with `data.unseen=[1e5]` as `data.unseen=['1e5']`: a name is what was typed,
    where Hydra would read a number (100000.0), a truth value or null; a whole number is its own
    text. And with `method.lam=0.1` as `++method.lam=0.1`.

    A YAML may leave out what the option's class says, and the method may be swept: whether a key is
    there is the schema's to say, for each run (see typed.py), and not Hydra's.
    """
    groups, read = (*OPTIONS, *SECTIONS), []
    for argument in arguments:
        key, sign, value = argument.partition("=")
        if key.lstrip("+") in NAMES:
            value = _VALUES.sub(_as_text, value)
        added = "++" if "." in key and key.partition(".")[0] in groups else ""
        read.append(f"{added}{key}{sign}{value}")
    return read


def as_typed(arguments: Sequence[str]) -> list[str]:
    """The other way round, for titles and records."""
    return [text.removeprefix("++") for text in arguments]


def _as_text(match: re.Match[str]) -> str:
    text = match[0].strip()
    is_other = _NO_TEXT.fullmatch(text) and not re.fullmatch(r"-?[1-9]\d*|0", text)
    return match[0].replace(text, f"'{text}'") if is_other else match[0]


def composed_config(arguments: Sequence[str]) -> DictConfig:
    """The config that these overrides give, for a command that is not `train`. Raises UserError."""
    try:
        with initialized(arguments) as overrides:
            return compose("config", overrides=overrides)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise UserError(composed_error(error, arguments)) from None


@contextmanager
def initialized(arguments: Sequence[str]) -> Iterator[list[str]]:
    """Within it Hydra composes from conf/ and the user's config directory; gives its overrides."""
    publish()
    where = str(conf_folders()[-1].absolute()).replace("'", r"\'")
    own = [f"hydra.searchpath=['file://{where}']"] if config_folder() else []
    with initialize_config_module("robustmd.conf", version_base="1.3"):
        yield [*own, *as_hydra_reads(arguments)]


def publish() -> None:
    """Tell Hydra of every section's and option's defaults, and of the options that have no YAML,
    here or in the user's config directory."""
    store = ConfigStore.instance()
    sections = {name: _defaults(schema) for name, schema in SECTIONS.items()}
    store.store("defaults", _defaults(Top) | sections, provider="robustmd")
    roots = conf_folders()
    for group, options in OPTIONS.items():
        for name, schema in options.items():
            node = _defaults(schema)  # in a group that --help does not list: see conf/config.yaml
            store.store(group=f"hydra/keys/{group}", name=name, node=node, provider="robustmd")
            if not any((root / group / f"{name}.yaml").is_file() for root in roots):
                store.store(group=group, name=name, node=node, provider="robustmd")


def _defaults(schema: type) -> dict[str, Any]:
    """As they are declared: what follows from them once an option is made is not typed by anybody,
    as the crop of data=pets, which follows from another size as well."""
    found: dict[str, Any] = {}
    for item in dataclasses.fields(schema):
        made = item.default_factory
        value: Any = item.default if made is dataclasses.MISSING else made()
        is_group = dataclasses.is_dataclass(value) and not isinstance(value, type)
        found[item.name] = dataclasses.asdict(value) if is_group else value
    return found
