"""Prepared-once arrays on disk: made by the first process that needs them, mapped by all others.

A store is a folder `<name>-<12 hex>` in the cache, with one .npy file for each array and a
manifest. It is prepared in a folder beside its place and renamed when whole, so that a killed
preparation leaves nothing that could be taken for a store; a long one leaves what the next goes on
from (see `ArrayWriter`). A second start maps the arrays without reading them: sources and arrays
are recognised by their stamps, and only where these differ by their checksums. A stale store (its
sources changed) and a damaged one are prepared again, with a line that says so.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robustmd.domains.arrays import ArrayWriter, file_of, open_array
from robustmd.domains.checksums import FileState, Stamp, array_sha256
from robustmd.domains.manifest import Manifest
from robustmd.domains.shared_folders import make_folder, share
from robustmd.errors import UserError
from robustmd.runs.lock import held

Say = Callable[[str], None]
Accept = Callable[[Mapping[str, str]], None]


@dataclass(frozen=True)
class Recipe:
    """How a store is made.

    name, version, settings: together the store's key; raise the version when `build` changes what
        it writes. settings must be JSON.
    build: writes the arrays; raises UserError for sources that it cannot use.
    sources: file name → path of the files that `build` reads; None: they are gone.
    md5: checksum of a source's content; raises UserError if it cannot be read.
    content: names what else `build` reads; a store that was made from another is out of date.
    resumable: `build` goes on after a cut, by `ArrayWriter.add_resumable`.
    """

    name: str
    version: int
    settings: Mapping[str, object]
    build: Callable[[ArrayWriter], None]
    sources: Mapping[str, Path] | None
    md5: Callable[[Path], str]
    content: str = ""
    resumable: bool = False

    @property
    def key(self) -> str:
        """The store's folder name."""
        return f"{self.name}-{_hash([self.name, self.version, self.settings])}"


@dataclass(frozen=True)
class Store:
    """arrays: read-only memory maps; checksums: their `array_sha256`; md5s: of the sources."""

    arrays: Mapping[str, np.ndarray]
    checksums: Mapping[str, str]
    md5s: Mapping[str, str]


class NotCurrentError(Exception):
    """Why the store on disk cannot be used as it is; an empty reason if there is none yet."""


def find_store(cache: Path, recipe: Recipe) -> Store | None:
    """The store if it is there, whole and current. Raises UserError if a source cannot be read."""
    try:
        return _open(cache / recipe.key, recipe)
    except NotCurrentError:
        return None


def open_store(cache: Path, recipe: Recipe, accept: Accept, say: Say) -> Store:
    """Open the store of `recipe` in `cache`, preparing it first if need be.

    accept: is given the sources' md5s and raises UserError if they may not be used.
    Raises UserError if the sources cannot be read or the cache not be written.
    """
    store = find_store(cache, recipe)  # who may only read needs no lock
    if store is None:
        try:
            make_folder(cache)
            lock = cache.resolve() / f"{recipe.key}.lock"
            with held(lock, say, waiting_for=f"preparing {recipe.name}"):
                store = _open_or_prepare(cache / recipe.key, recipe, accept, say)
        except OSError as error:
            raise UserError(
                f"cannot keep the prepared {recipe.name} data in {cache} "
                f"({error.strerror or error}); free space there or make it writable, or choose "
                "another folder with paths.cache=DIR"
            ) from error
    accept(store.md5s)
    return store


def read_through(folder: Path) -> None:
    """Read all arrays of the store in `folder`: are they still what they were prepared as?

    Raises UserError for one that is not.
    """
    try:
        for name, state in _manifest(folder).arrays.items():
            if array_sha256(open_array(file_of(folder, name))) != state.checksum:
                raise NotCurrentError(f"is damaged ({name}.npy is not what was prepared)")
    except (NotCurrentError, OSError, ValueError, EOFError) as error:
        raise UserError(f"{folder}: {error}; remove it to have it prepared again") from error


def _open(folder: Path, recipe: Recipe) -> Store:
    """Map the arrays of the store in `folder`. Where a stamp differs and the checksum does not, the
    manifest is given the new stamp, if it can be written.

    Raises NotCurrentError if the store has to be prepared (again), UserError if a source cannot be
    read.
    """
    manifest = _manifest(folder)
    if manifest.content != recipe.content:
        raise NotCurrentError("is out of date (what it was made from has changed)")
    states, arrays = {}, {}
    for name, state in manifest.arrays.items():
        arrays[name], states[name] = _array(folder, name, state)
    known = manifest.sources
    if recipe.sources is not None:
        if set(known) != set(recipe.sources):
            raise NotCurrentError("is made of other files")
        known = {
            name: _source(path, known[name], recipe.md5) for name, path in recipe.sources.items()
        }
    renewed = Manifest(manifest.key, manifest.content, known, states)
    if renewed != manifest:
        with suppress(OSError):  # then the next start compares checksums as well
            renewed.write(folder)
    return Store(
        arrays,
        {name: state.checksum for name, state in states.items()},
        {name: state.checksum for name, state in known.items()},
    )


def _manifest(folder: Path) -> Manifest:
    try:
        manifest = Manifest.read(folder)
    except FileNotFoundError as error:
        raise NotCurrentError("is damaged (no manifest)" if folder.exists() else "") from error
    except (OSError, ValueError) as error:
        raise NotCurrentError(f"is damaged (manifest: {error})") from error
    if manifest.key != folder.name:
        raise NotCurrentError("is damaged (the manifest of another store)")
    return manifest


def _source(path: Path, known: FileState, md5: Callable[[Path], str]) -> FileState:
    try:
        if known.unchanged(path):
            return known
        if md5(path) == known.checksum:
            return FileState.of(path, known.checksum)
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})") from error
    raise NotCurrentError(f"is out of date ({path} has changed)")


def _array(folder: Path, name: str, known: FileState) -> tuple[np.ndarray, FileState]:
    path = file_of(folder, name)
    try:
        array = open_array(path)
        if known.unchanged(path):
            return array, known
        if array_sha256(array) == known.checksum:
            return array, FileState.of(path, known.checksum)
    except (OSError, ValueError, EOFError) as error:
        raise NotCurrentError(f"is damaged ({path.name}: {error})") from error
    raise NotCurrentError(f"is damaged ({path.name} has changed)")


def _open_or_prepare(folder: Path, recipe: Recipe, accept: Accept, say: Say) -> Store:
    """The work under the lock. Raises OSError for the cache, UserError for the sources."""
    try:
        return _open(folder, recipe)  # another may have made it meanwhile
    except NotCurrentError as error:
        reason = str(error)
    sources = {name: _state(path, recipe.md5) for name, path in (recipe.sources or {}).items()}
    accept({name: state.checksum for name, state in sources.items()})
    if reason:
        say(f"the prepared {recipe.name} data in {folder} {reason}; preparing it again")
    else:
        say(f"preparing {recipe.name} (once; kept in {folder})")
    _prepare(folder, recipe, sources)
    return _open(folder, recipe)


def _state(path: Path, md5: Callable[[Path], str]) -> FileState:
    """A source's state before it is read."""
    try:
        stamp = Stamp.of(path)
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})") from error
    return FileState(stamp, md5(path))


def _prepare(folder: Path, recipe: Recipe, sources: Mapping[str, FileState]) -> None:
    """Build in a folder beside the store's place, then put it there. Needs the store's lock."""
    of = _hash([recipe.content, {name: state.checksum for name, state in sources.items()}])
    partial = folder.with_name(f".{folder.name}.{of}")  # of other sources: nothing to go on from
    kept = partial if recipe.resumable else None
    _remove_leftovers(folder, kept)
    try:
        partial.mkdir(exist_ok=True)
        share(partial)
        writer = ArrayWriter(partial, recipe.resumable)
        recipe.build(writer)
        for name, path in (recipe.sources or {}).items():  # what was hashed must be what was read
            if not path.exists() or not sources[name].unchanged(path):
                raise UserError(f"{path} changed while it was read; run again when it is complete")
        writer.remove_marks()
        Manifest(folder.name, recipe.content, dict(sources), writer.states).write(partial)
        if folder.exists():
            folder.rename(folder.with_name(f".{folder.name}.replaced"))
        partial.rename(folder)
    finally:
        _remove_leftovers(folder, kept)


def _remove_leftovers(folder: Path, kept: Path | None) -> None:
    """What preparations have left beside the store's place."""
    for leftover in folder.parent.glob(f".{folder.name}.*"):
        if leftover != kept:
            shutil.rmtree(leftover, ignore_errors=True)


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
