"""`robustmd completion bash`: what a shell evaluates to complete commands, flags, keys and values.

The shell asks `robustmd` itself, by argcomplete's protocol; `complete` answers. No torch, no Hydra.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import argcomplete
from argcomplete.completers import DirectoriesCompleter

from robustmd.commands import COMMANDS, make_parser

EPILOG = """\
Put the line of your shell into its start-up file:

  eval "$(robustmd completion bash)"          ~/.bashrc
  eval "$(robustmd completion zsh)"           ~/.zshrc, after compinit
  robustmd completion fish | source           ~/.config/fish/config.fish
"""


def parser() -> argparse.ArgumentParser:
    parser = make_parser("completion", EPILOG)
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    return parser


def main(arguments: Sequence[str]) -> int:
    """Print what the shell evaluates."""
    shell = parser().parse_args(arguments).shell
    print(argcomplete.shellcode(["robustmd"], shell=shell))  # noqa: T201
    return 0


def complete() -> None:
    """Answer the shell, and end the process. Where anything is wrong there is no answer."""
    words = os.environ.get("COMP_LINE", "").split()
    whole = argparse.ArgumentParser("robustmd")
    commands = whole.add_subparsers()
    for name, what in COMMANDS.items():
        own = []
        if name in words[1:2]:
            module = import_module(f"robustmd.commands.{name}")
            own = [module.parser()]
            for action in own[0]._actions:
                if "key=value" in str(action.metavar):
                    action.completer = Settings(words, action, getattr(module, "CHANGEABLE", ()))
                elif action.metavar in ("METHOD", "NAME"):
                    action.completer = _options  # type: ignore[attr-defined]
        commands.add_parser(name, help=what, parents=own, add_help=not own)
    argcomplete.autocomplete(whole, default_completer=DirectoriesCompleter())


def _options(action: argparse.Action, **_: Any) -> Iterable[str]:
    from robustmd.config.settings import OPTIONS  # noqa: PLC0415 - only where it is asked for

    return OPTIONS["method" if action.metavar == "METHOD" else "data"].offered


class Settings:
    """Completes key=value, and KEY or NAME where the argument takes it.

    words: of the line. allowed: what keys begin with; of none: any.
    """

    def __init__(self, words: list[str], action: argparse.Action, allowed: Sequence[str]) -> None:
        self.words, self.also, self.allowed = words, str(action.metavar).split()[0], allowed

    def __call__(self, prefix: str, **_: Any) -> Iterator[str]:
        from robustmd.config import plugins  # noqa: PLC0415
        from robustmd.config.settings import DATA, GROUPS, OPTIONS  # noqa: PLC0415

        with contextlib.suppress(Exception), plugins.in_config_dir(self.words) as given:
            plugins.load_plugins(plugins.imports_of(given))
            key, sign, value = prefix.partition("=")
            if sign:
                yield from (f"{key}={one}" for one in _values(key, value))
                return
            if self.also == "KEY":
                yield from (name for group in OPTIONS for name in OPTIONS[group].offered)
            yield from DATA if self.also == "NAME" else ()
            yield from (f"{group}=" for group in GROUPS if self._takes(group))
            end = "" if self.also == "KEY" else "="
            yield from (f"{name}{end}" for name in self._keys() if self._takes(name))

    def _takes(self, name: str) -> bool:
        parts = [name, name.partition(".")[0]]
        return not self.allowed or any(part in self.allowed for part in parts)

    def _keys(self) -> set[str]:
        """Of the options in the line, else of the usual ones."""
        from robustmd.config.keys import all_keys  # noqa: PLC0415
        from robustmd.config.settings import OPTIONS  # noqa: PLC0415

        named = {"data": "digits_mini", "backbone": "alexnet", "method": "opt"}
        named |= {k: v for k, _, v in (word.partition("=") for word in self.words) if k in OPTIONS}
        found = set()
        for key in all_keys():
            group, _, option = (key.option or "").partition("=")
            names = named.get(group, "").split(",")
            if option in names or not any(name in OPTIONS.get(group, ()) for name in names):
                found.add(key.name)
        return found


def _values(key: str, value: str) -> Iterable[str]:
    """What may stand behind `key=`, after the commas that are there."""
    from robustmd.config.keys import all_keys  # noqa: PLC0415
    from robustmd.config.plugins import conf_folders  # noqa: PLC0415
    from robustmd.config.settings import GROUPS, OPTIONS  # noqa: PLC0415
    from robustmd.registry import AUGMENTATIONS, LOSSES  # noqa: PLC0415

    found = next((one for one in all_keys() if one.name == key), None)
    if key in GROUPS:
        files = (file for folder in conf_folders() for file in (folder / key).glob("*.yaml"))
        values = {*(file.stem for file in files), *OPTIONS.get(key, ())}
    elif found is None:
        return []
    elif key in ("training.loss", "data.augment"):
        values = {*LOSSES} if key == "training.loss" else {"none", *AUGMENTATIONS}
    elif found.kind is bool:
        values = {"true", "false"}
    elif found.range.values:
        values = {*found.range.values}
    else:
        return DirectoriesCompleter()(value)
    before = value.rpartition(",")[0]
    return (f"{before},{one}" if before else one for one in sorted(values))
