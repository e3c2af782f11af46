"""The identity of a Python object: two objects with one digest compute the same.

A pickle's bytes cannot tell. They differ between two processes for one object (counters of classes
and hooks, which strings are one object, the order of sets), and name the functions of a module
without what they do. So this walks through what a pickle would hold, and hashes it: the user's own
functions and classes by their bytecode, those of installed libraries by name. Nothing is pickled.

Files, environment variables and whatever else a function reads as it runs are not seen.
"""

from __future__ import annotations

import hashlib
from typing import Any

from robustmd.object_parts import (
    Address,
    Unknown,
    hooks_of_all_modules,
    library_name,
    parts_of,
    replaced_in,
)

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))


def digest_of(value: Any, name: str = "") -> tuple[str, bool]:
    """(hex sha256, whether `name` was needed): the same for the same object in another process.

    Args:
        value: of tensors and arrays the bytes count, of functions all that they refer to.
        name: stands for each part that cannot be compared, as a lock.

    Raises:
        Unknown: there is such a part, and no name.
    """
    walk = _Walk(name)
    walk.add(value)
    walk.add([list(hooks.values()) for hooks in hooks_of_all_modules()])
    return walk.sha256.hexdigest(), walk.needed_name


class _Walk:
    """One hash over an object and all that it refers to, each once."""

    def __init__(self, name: str) -> None:
        self.sha256, self.name, self.needed_name = hashlib.sha256(), name, False
        self._places: dict[Any, int] = {}  # by id, of memory by address
        self._alive: list[Any] = []  # so that no id is given twice

    def add(self, value: Any) -> None:
        waiting = [value]  # no recursion: objects may be nested deeply
        while waiting:
            waiting += reversed(self._tell(waiting.pop()))

    def _tell(self, value: Any) -> tuple[Any, ...]:
        """Hash what a value is; its parts, which are to follow."""
        kind = type(value)
        key = ("memory", int(value)) if kind is Address else id(value)
        if kind in PLAIN:
            self._hash(kind.__name__, value)
        elif kind is tuple:
            self._hash("tuple", len(value))
            return value
        elif key in self._places:
            self._hash("again", self._places[key])
        else:
            self._places[key] = len(self._places)
            self._alive.append(value)
            return self._tell_new(value)
        return ()

    def _tell_new(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, Address):
            self._hash("memory")
            return ()
        if isinstance(value, memoryview):
            self._hash("bytes", value.nbytes)
            self.sha256.update(value)
            return ()
        if isinstance(value, set | frozenset):
            self._hash(*sorted(self._apart(part) for part in value))
            return (type(value),)
        if name := library_name(value):
            self._hash("library", name)
            return (replaced_in(value),)
        try:
            parts = parts_of(value)
        except Exception as error:  # whatever an object's own reduction raises
            self._tell_unknown(value, error)
            return ()
        return type(value), parts

    def _tell_unknown(self, value: Any, error: Exception) -> None:
        what = str(error) if isinstance(error, Unknown) else f"a {type(value).__qualname__}"
        if not self.name:
            raise Unknown(what) from error
        self.needed_name = True
        self._hash("by name", what, self.name)

    def _apart(self, part: Any) -> str:
        """The digest of one member of a set, which has no place among the others."""
        walk = _Walk(self.name)
        if type(part) not in PLAIN:
            walk._places, walk._alive = dict(self._places), self._alive
        walk.add(part)
        self.needed_name |= walk.needed_name
        return walk.sha256.hexdigest()

    def _hash(self, *words: Any) -> None:
        self.sha256.update(f"{words!r}\n".encode())
