"""`robustmd explain`: what a key or an option means; `robustmd train --help` prints all keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table

from robustmd.config.check import make_config
from robustmd.config.keys import Key, all_keys, described, keys_of, meant
from robustmd.config.settings import OPTIONS, SECTIONS, Config, Top
from robustmd.config.values import hydra_value
from robustmd.console import make_console
from robustmd.errors import UserError


def explain(overrides: Sequence[str]) -> int:
    """Print what a key or an option is, or every key. Raises UserError.

    overrides: a key's or an option's name, if any, and settings as `train` takes them.
    """
    console = make_console()
    topics = [word for word in overrides if "=" not in word]
    settings = [word for word in overrides if "=" in word]
    if len(topics) > 1:
        raise UserError(f"{' '.join(topics)}: one key at a time")
    topic = topics[0] if topics else ""
    options = [(group, topic) for group in OPTIONS if topic in OPTIONS[group]]
    if not topic and len(settings) == 1 and settings[0].partition("=")[0] in OPTIONS:
        group, _, name = settings[0].partition("=")
        options = [(group, name)]
    for group, name in options:
        explain_option(group, name, console)
    if topic and not options:
        explain_key(topic, settings, console)
    elif not options:
        explain_all(settings)
    return 0


def explain_all(overrides: Sequence[str]) -> None:
    """Every key of the config that was typed: its value and what it means."""
    console = make_console()
    config = make_config(overrides)
    values = dict(config.leaves())
    for title, keys in _groups(config):
        console.print(f"\n{title}", soft_wrap=True)
        _print_table([(k.name, hydra_value(values[k.name]), k.meaning) for k in keys], console)


def _groups(config: Config) -> Iterator[tuple[str, Iterable[Key]]]:
    for group, options in OPTIONS.items():
        name = getattr(config, group).name
        others = ", ".join(one for one in options.offered if one != name)
        yield f"{group}={name}; there are also {others}", keys_of(group, options[name], name)
    for part, schema in SECTIONS.items():
        yield part, keys_of(part, schema)
    yield "in no group", keys_of("", Top)


def explain_option(group: str, name: str, console: Console) -> None:
    """What an option is, and its keys."""
    if name not in OPTIONS[group]:
        raise UserError(
            f"{group}={name}: no such option; allowed: {', '.join(OPTIONS[group].offered)}"
        )
    schema = OPTIONS[group][name]
    keys = list(keys_of(group, schema, name))
    console.print(f"{group}={name}: {described(schema) or 'it has no docstring'}\n", soft_wrap=True)
    rows = [(k.name, hydra_value(k.default), k.allowed, k.meaning) for k in keys]
    _print_table([("key", "default", "allowed", "meaning"), *rows] if rows else [], console)
    page = keys[0].page if keys else f"docs/methods/{name}.md"
    console.print(f"\nmore: {page or schema.__module__}", soft_wrap=True)


def explain_key(name: str, overrides: Sequence[str], console: Console) -> None:
    """What a key means, may be and is. Raises UserError: there is none."""
    known = all_keys()
    found = meant(name, (key.name for key in known))
    if found is None:
        raise UserError(f"{name}: no such key, method or other option; robustmd explain lists all")
    config = make_config(overrides)
    values = dict(config.leaves())
    chosen = {f"{group}={getattr(config, group).name}" for group in OPTIONS}
    of_that_name = [key for key in known if key.name == found]
    key = next((key for key in of_that_name if key.option in chosen), of_that_name[0])
    now = f"not there, but with {key.option}"
    if key.option is None or key.option in chosen:
        now = hydra_value(values[found])
    console.print(f"{found}: {key.meaning}", soft_wrap=True)
    rows = [("is", key.allowed), ("default", hydra_value(key.default)), ("now", now)]
    if key.option:
        rows.insert(0, ("of", ", ".join(dict.fromkeys(k.option or "" for k in of_that_name))))
    group, _, option = (key.option or "").partition("=")
    more = key.page or OPTIONS[group][option].__module__
    _print_table([*rows, ("more", more)], console)


def _print_table(rows: Iterable[Sequence[str]], console: Console) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row("", *row)
    console.print(table)
