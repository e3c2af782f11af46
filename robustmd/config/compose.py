"""From what a user types to the plain config of a run.

Hydra is given the choices of files alone (`method=opt`, `experiment=demo`), and only those that
exist. Values are read by Hydra's grammar and put into what it composed, so that every mistake in
one is ours to tell (see check.py).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from robustmd.config.grammar import is_hydras, parsed, shortened
from robustmd.config.plugins import conf_folders, config_folder
from robustmd.config.settings import GROUPS, OPTIONS, SECTIONS, Top, defaults_of
from robustmd.errors import UserError, printable
from robustmd.registry import FROM_PYTHON, Settings

SWEEP = "sweep"  # the key of an experiment that says which runs it has; see sweep/rows.py
FOR = "for"  # the key of an experiment that says what it sets for one data set alone


def compose(arguments: Sequence[str]) -> dict[str, Any]:
    """The plain config of one run: what the chosen files say, with the values typed in it.

    Keys that no file sets are not there, and none is checked; check.py does it. Raises UserError.
    """
    values = {key: one for key, one in parsed(arguments).items() if not is_hydras(key)}
    for override in values.values():
        if override.is_sweep_override():
            raise UserError(
                f"{shortened(str(override.input_line))}: several values are a sweep, one run each: "
                "write -m right after train; one list is key=[a,b], text with a comma 'key=\"a,b\"'"
            )
    chosen = [_choice(key, values.pop(key)) for key in GROUPS if key in values]
    searched = [text for text in arguments if text.startswith("hydra.searchpath=")]
    config = put(copy.deepcopy(_of_files((*searched, *chosen), _own_files())), values)
    return _resolved(config) if "${" in str(config) else config


def put(config: dict[str, Any], values: Mapping[str, Override]) -> dict[str, Any]:
    """The config with these values in it."""
    for key, override in values.items():
        *groups, name = key.split(".")
        inner = config
        for group in groups:
            if not isinstance(inner.get(group), dict):
                inner[group] = {}
            inner = inner[group]
        inner[name] = override.value()
    return config


def _choice(group: str, override: Override) -> str:
    """`group=name`, where there is such an option. Raises UserError."""
    name = override.value()
    if isinstance(name, dict | list):
        line = override.input_line
        raise UserError(f"{line}: {group} takes the name of one option, as {group}=NAME")
    known = options(group)
    if str(name) not in known and not (group == "experiment" and name is None):
        own = "; one of your own comes with imports=[MODULE]" if group in OPTIONS else ""
        if group == "backbone":
            own += ", one of a library's by its name, as backbone=timm backbone.model=NAME"
        names = ", ".join(one for one in known if one != FROM_PYTHON)
        raise UserError(f"{group}={shortened(str(name))}: no such option; allowed: {names}{own}")
    return f"{group}={'null' if name is None else name}"


def options(group: str) -> list[str]:
    """What `group=` may name: files of conf/ and of the user's folder, and what is registered."""
    roots = [folder / group for folder in conf_folders()]
    files = {
        path.relative_to(root).with_suffix("").as_posix()
        for root in roots
        for path in root.rglob("*.yaml")
    }
    return sorted(files | {*OPTIONS.get(group, ())})


def loader() -> ConfigLoaderImpl:
    """What composes files: conf/, then the user's folder. It keeps nothing of Hydra's own state, so
    that it works within somebody else's `hydra.main`."""
    version.setbase("1.3")
    store = ConfigStore.instance()
    for group, registered in OPTIONS.items():
        with_files = {
            path.stem for folder in conf_folders() for path in (folder / group).glob("*.yaml")
        }
        for name in registered.keys() - with_files:
            store.store(group=group, name=name, node={"name": name}, provider="robustmd")
    path = create_config_search_path("pkg://robustmd.conf")
    if folder := config_folder():
        path.prepend("robustmd", f"file://{folder.absolute()}", anchor="schema")
    return ConfigLoaderImpl(config_search_path=path)


@lru_cache(maxsize=512)
def _of_files(choices: tuple[str, ...], _: object) -> dict[str, Any]:
    """What Hydra composes of these choices. The user's files as they are are part of the key."""
    try:
        composed = loader().load_configuration("config", list(choices), RunMode.RUN)
    except (HydraException, OmegaConfBaseException, ValueError, OSError) as error:
        said = " ".join(printable(line.strip()) for line in str(error).splitlines()[:2])
        raise UserError(f"{' '.join(choices)}: makes no config ({said})") from None
    plain: dict[str, Any] = OmegaConf.to_container(composed, resolve=False)  # type: ignore[assignment]
    chosen = plain.pop("hydra")["runtime"]["choices"]["data"]
    of_data = plain.pop(FOR, None) or {}
    own = of_data.get(chosen, {}) if isinstance(of_data, dict) else of_data
    if not isinstance(own, dict):
        raise UserError(f"{FOR}={of_data}: must be {{DATA: {{key: value}}}}")
    return OmegaConf.to_container(OmegaConf.merge(plain, own))  # type: ignore[return-value]


def _own_files() -> object:
    """When the files of the user's folder were written: others make another config."""
    folder = config_folder()
    files = sorted(folder.rglob("*.yaml")) if folder else ()
    return folder, tuple((path, path.stat().st_mtime_ns) for path in files)


def _resolved(config: dict[str, Any]) -> dict[str, Any]:
    """The same with every reference (`${…}`) filled in. Raises UserError: it leads nowhere."""
    known: dict[str, Any] = {name: defaults_of(schema) for name, schema in SECTIONS.items()}
    for group, registered in OPTIONS.items():
        option: type[Settings] | None = registered.get(config.get(group, {}).get("name"))
        known[group] = defaults_of(option) if option else {}
    whole: DictConfig = OmegaConf.merge(defaults_of(Top) | known, config)  # type: ignore[assignment]
    try:
        return OmegaConf.to_container(whole, resolve=True)  # type: ignore[return-value]
    except OmegaConfBaseException as error:
        words = str(error).partition("\n")[0]
        raise UserError(f"{error.full_key}: {words}; write the value itself") from None
