"""The user's own code comes in: modules named by `imports=[…]` and entry points of other packages.

Own code is trusted as own code is; docs/own_code.md. Light on purpose: no torch, no hydra.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from robustmd.errors import UserError

if TYPE_CHECKING:
    from robustmd.config.settings import Config

GROUP = "robustmd.plugins"  # of entry points
CONFIG_DIR = "ROBUSTMD_CONFIG_DIR"  # names a folder for every command, as --config-dir does
_IMPORTS = re.compile(r"\+{0,2}imports=\[?([^\]]*)\]?")


def imports_of(arguments: Sequence[str]) -> list[str]:
    """The modules that `imports=[a,b]` among a command's arguments names."""
    given = [match[1] for text in arguments if (match := _IMPORTS.fullmatch(text))]
    names = (n.strip(" '\"") for n in ",".join(given).split(","))
    return list(dict.fromkeys(name for name in names if name))


def imports_of_experiments(arguments: Sequence[str]) -> list[str]:
    """Those of an experiment in a config directory of the user's, which `train` alone takes.

    Hydra can compose an experiment with `override /method: mine` only if it knows of `mine`, so
    the file's own `imports` are read before. What cannot be read is Hydra's to say. Raises
    UserError: it names a sweep as they were named before.
    """
    chosen = [text for text in arguments if text.startswith("experiment=")]
    names = [name for text in chosen for name in text.partition("=")[2].split(",")]
    modules: list[str] = []
    if (folder := config_folder()) is None:
        return []
    for name in names:
        path = folder / "experiment" / f"{name}.yaml"
        if path.is_file():
            import yaml  # noqa: PLC0415 - other commands need none

            with contextlib.suppress(yaml.YAMLError, ValueError):
                found = yaml.safe_load(path.read_text("utf-8"))
                if not isinstance(found, dict):
                    continue
                imports = found.get("imports")
                modules += map(str, imports if isinstance(imports, list) else [])
                if "sweeper" in (found.get("hydra") or {}):
                    raise UserError(
                        f"{path}: hydra.sweeper is no more; write sweep: {{rows: …, params: …}} at "
                        "the top of the file, without hydra: and mode:"
                    )
    return modules


def config_folder() -> Path | None:
    """The user's folder beside conf/, which `--config-dir` names for this command."""
    named = os.environ.get(CONFIG_DIR)
    return Path(named) if named else None


def conf_folders() -> list[Path]:
    """conf/, then the user's config directory."""
    own = config_folder()
    return [Path(str(files("robustmd.conf"))), *([own] if own else [])]


@contextlib.contextmanager
def in_config_dir(named: str | None) -> Iterator[None]:
    """Within it the folder that `--config-dir` names holds, also in processes that are started
    there; None: the environment's. Raises UserError: there is no such folder."""
    if named is not None and (not named or not Path(named).is_dir()):
        raise UserError(f"--config-dir {named}: there is no such folder")
    before = os.environ.get(CONFIG_DIR, "")
    os.environ[CONFIG_DIR] = before if named is None else named
    try:
        yield
    finally:
        os.environ[CONFIG_DIR] = before


def load_plugins(modules: Sequence[str]) -> None:
    """Import the modules, from the working folder or from PYTHONPATH, and what entry points name.

    Raises:
        UserError: one cannot be imported; with the place in it where it fails.
    """
    if modules and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # a console script does not look there
    named = [(f"imports=[{name}]", name) for name in modules]
    found = entry_points(group=GROUP)
    named += [(f"entry point {point.name} of {GROUP}", point.module) for point in found]
    if named:
        importlib.import_module("robustmd.config.settings")  # what is built in has its names first
    for written, name in named:
        _load(written, name)


def _load(written: str, name: str) -> None:
    try:
        module = importlib.import_module(name)
    except UserError as error:
        raise UserError(f"{written}: {error}") from None
    except (Exception, SystemExit) as error:  # a script that ends itself is no module
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise UserError(
                f"{written}: there is no module {name} in {Path.cwd()} or on PYTHONPATH"
            ) from None
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f" ({Path(place.filename).name}, line {place.lineno})"
        raise UserError(
            f"{written}: cannot be imported: {type(error).__name__}: {error}"
            f"{'' if isinstance(error, SyntaxError) else where}"  # which says where by itself
        ) from None
    own = Path(f"{name.replace('.', '/')}.py").absolute()
    imported = getattr(module, "__file__", None)
    if own.is_file() and not (imported and own.samefile(imported)):
        raise UserError(
            f"{written}: Python imported {imported or 'a module of its own'} and not {own}; "
            "rename your file"
        )


def described(config: Config) -> list[dict[str, str | None]]:
    """Of each module outside this package that defines an option, a metric, the loss or the
    augmentation of the run: its name, version and the sha256 of its file, for environment.json."""
    from robustmd.registry import AUGMENTATIONS, LOSSES, METRICS  # noqa: PLC0415

    names = {type(option).__module__ for option in (config.data, config.backbone, config.method)}
    names |= {METRICS[name].of.__module__ for name in config.evaluation.metrics}
    names.add(LOSSES[config.training.loss].of.__module__)
    if config.data.augment in AUGMENTATIONS:
        names.add(AUGMENTATIONS[config.data.augment].of.__module__)
    return [
        {
            "module": name,
            "version": getattr(sys.modules[name], "__version__", None),
            "sha256": _sha256(getattr(sys.modules[name], "__file__", None)),
        }
        for name in sorted(names)
        if name.partition(".")[0] != "robustmd"
    ]


def whose(error: BaseException) -> str:
    """Who is to look for the cause of an exception that nobody expected, for the last line."""
    from robustmd.registry import modules_registered  # noqa: PLC0415

    theirs = {getattr(sys.modules[n], "__file__", None): n for n in modules_registered()}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in theirs:
            return f"it was raised in {theirs[frame.filename]}, line {frame.lineno}"
    return "this is a bug of ours; the lines above say where"


def _sha256(path: str | None) -> str | None:
    return None if path is None else hashlib.sha256(Path(path).read_bytes()).hexdigest()
