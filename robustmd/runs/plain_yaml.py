"""YAML as runs write it: mappings, lists, text, numbers, true and false, null. Nothing else.

The whole language has more: dates, numbers in base 60 (1:30 is 90), tags that name types, and
aliases by which few bytes unfold into endlessly many. In a config.yaml of ours none of it stands.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

# The same events from both; libyaml is ten times as fast where PyYAML was built with it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KINDS = Resolver()
_MAKE = {
    "null": SafeConstructor().construct_yaml_null,
    "bool": SafeConstructor().construct_yaml_bool,
    "int": SafeConstructor().construct_yaml_int,
    "float": SafeConstructor().construct_yaml_float,
}
_LONGEST = 400  # characters of a whole number


def plain_value(text: str, levels: int) -> Any:
    """The value of a YAML document; what is no plain value of another kind is text.

    Args:
        text: the document.
        levels: how deep lists and mappings may be in one another.

    Raises:
        yaml.YAMLError: it is not YAML.
        ValueError: it has an alias, a tag or a second document, or is nested too deep; the message
            goes on after the file's name.
    """
    events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
    next(events)  # the stream begins
    if not isinstance(next(events), yaml.DocumentStartEvent):
        return None
    value = _value(events, next(events), levels)
    next(events)  # the document ends
    if not isinstance(next(events), yaml.StreamEndEvent):
        raise ValueError("holds more than one document")
    return value


def _value(events: Iterator[Any], event: Any, levels: int) -> Any:
    if isinstance(event, yaml.AliasEvent):
        raise ValueError("has YAML aliases, which a run never writes")
    if event.tag is not None:
        raise ValueError("has YAML tags, which a run never writes")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event.value) if event.implicit[0] else event.value
    if levels == 0:
        raise ValueError("is nested too deep")
    if isinstance(event, yaml.SequenceStartEvent):
        items = itertools.takewhile(lambda e: not isinstance(e, yaml.SequenceEndEvent), events)
        return [_value(events, item, levels - 1) for item in items]
    found = {}
    for key in events:
        if isinstance(key, yaml.MappingEndEvent):
            break
        if not isinstance(key, yaml.ScalarEvent):
            raise ValueError("has a key that is no text")
        found[key.value] = _value(events, next(events), levels - 1)
    return found


def _scalar(text: str) -> Any:
    """A plain scalar: a number, true or false, null; else text."""
    kind = _KINDS.resolve(yaml.ScalarNode, text, (True, False)).rpartition(":")[2]
    if kind not in _MAKE or ":" in text:
        return text
    if kind == "int" and len(text) > _LONGEST:
        raise ValueError("has a number that is too large")
    try:
        return _MAKE[kind](yaml.ScalarNode(kind, text))
    except ValueError:  # 0x_ is none
        return text
