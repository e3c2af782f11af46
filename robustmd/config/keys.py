"""Every key that can be set: what it means, what it may be, the page that says more."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from robustmd.config.ranges import ANYTHING, Allowed, allowed_of
from robustmd.config.settings import DATA, OPTIONS, SECTIONS, Top
from robustmd.registry import Settings

KINDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    list: "a list",
}
# In docs/, of a key, or of its part, else "runs"; methods and some data sets have their own.
PAGES = {
    "jobs": "sweeps",
    "jobs_per_device": "sweeps",
    "imports": "own_code",
    "tracking": "trackers",
    "tracking_model": "trackers",
    "training": "training",
    "training.domains_per_batch": "many_domains",
    "runtime": "benchmarks",
    "logging": "methods/README",
    "backbone": "backbones",
    **{f"data.{name}": "own_data" for name in ("unseen", "sizes", "validation")},
    "data.augment": "augmentation",
}
SHORT = {  # what other tools call ours
    "lr": "learning_rate",
    "wd": "weight_decay",
    "bs": "batch_size",
    "epochs": "iterations",
    "steps": "iterations",
    "lambda": "lam",
    "workers": "jobs",
}


@dataclass(frozen=True)
class Key:
    """A key by its whole name, as "method.lam", and the option that has it, as "method=opt"; None:
    it is in no group of options."""

    name: str
    option: str | None
    item: FieldInfo

    @property
    def default(self) -> Any:
        """The recorded one."""
        return self.item.get_default(call_default_factory=True, validated_data={})

    @property
    def kind(self) -> Any:
        """Its type."""
        return self.item.annotation

    @property
    def meaning(self) -> str:
        return self.item.description or ""

    @property
    def range(self) -> Allowed:
        return allowed_of(self.item)

    @property
    def words(self) -> str:
        """Its range, or else its type."""
        return in_words(self.kind) if self.range is ANYTHING else self.range.words

    @property
    def allowed(self) -> str:
        """The same, and null where it may be null."""
        takes_null = NoneType in get_args(self.kind) and not self.words.startswith("null")
        return ("null or " if takes_null else "") + self.words

    @property
    def page(self) -> str | None:
        """Of the documentation, from the top of the repository; None for one of the user's own."""
        part, _, option = (self.option or "").partition("=")
        if part and not OPTIONS[part][option].__module__.startswith("robustmd."):
            return None
        own = {"method": f"methods/{option}", "data": DATA.flag(option, "page")}.get(part)
        of_part = PAGES.get(self.name.partition(".")[0], "runs")
        return f"docs/{PAGES.get(self.name) or own or of_part}.md"


def in_words(kind: Any) -> str:
    """A type: "a number or text"."""
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    names = (KINDS.get(get_origin(one) or one) for one in kinds)
    return " or ".join(filter(None, names)) or "anything"


def described(schema: type) -> str:
    """What an option's class says of itself."""
    return inspect.cleandoc(schema.__doc__ or "")


def keys_of(part: str, schema: type[Settings], option: str = "") -> Iterator[Key]:
    """The keys of one section, or of an option of the group `part`, its own first; "" for those of
    neither."""
    common = OPTIONS[part].base.model_fields if part in OPTIONS else {}
    items = sorted(schema.model_fields.items(), key=lambda named: named[0] in common)
    for name, item in items:
        whole, kind = f"{part}.{name}" if part else name, item.annotation
        if isinstance(kind, type) and issubclass(kind, Settings):
            where = f"{part}={option}" if option else None
            yield from (Key(f"{whole}.{one.name}", where, one.item) for one in keys_of("", kind))
        elif name != "name" and not item.exclude:
            yield Key(whole, f"{part}={option}" if option else None, item)


def all_keys() -> list[Key]:
    """Of every option as well."""
    parts = [("", Top, ""), *((part, schema, "") for part, schema in SECTIONS.items())]
    parts += [(p, schema, name) for p in OPTIONS for name, schema in OPTIONS[p].items()]
    return [key for part in parts for key in keys_of(*part)]


def meant(name: str, names: Iterable[str]) -> str | None:
    """The key of these that a misspelt, short or foreign name stands for."""
    by_end: dict[str, list[str]] = {}
    for one in names:
        by_end.setdefault(one.rpartition(".")[2], []).append(one)
    group, dot, last = name.rpartition(".")
    near = difflib.get_close_matches(SHORT.get(last, last), by_end, n=1, cutoff=0.7)
    if not near:
        return None
    here, there = f"{group}{dot}{near[0]}", by_end[near[0]]
    return here if here in there else there[0]
