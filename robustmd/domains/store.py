"""Prepared-once arrays on disk: made by the first process that needs them, mapped by all others.

A store is a folder `<name>-<12 hex>` in the cache, with one .npy file for each array and a
manifest. It is prepared in a temporary folder beside its place and renamed when whole, so that a
killed preparation leaves nothing that could be taken for a store; a long one leaves what the next
goes on from (see journal.py). A second start maps the arrays without reading them: sources and
arrays are recognised by their stamps (see stamp.py), and only where these differ by their
checksums. A stale store (its sources changed) and a damaged one are prepared again, with a line
that says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.journal import Journal
from robustmd.domains.lock import held
from robustmd.domains.manifest import FileState, Manifest
from robustmd.domains.opening import NotCurrentError, Sources, Store, open_current
from robustmd.domains.shared import make_folder, share
from robustmd.errors import UserError

Say = Callable[[str], None]
Accept = Callable[[Mapping[str, str]], None]
PARTIAL = ".partial"


@dataclass(frozen=True)
class Recipe:
    """How a store is made.

    name, version, settings: together the store's key; raise the version when `build` changes what
        it writes. settings must be JSON.
    build: writes the arrays; raises UserError for sources that it cannot use.
    sources: file name → path of the files that `build` reads; None: they are gone.
    md5: checksum of a source's content; raises UserError if it cannot be read.
    resumable: `build` goes on after a cut, by `ArrayWriter.add_resumable`.
    """

    name: str
    version: int
    settings: Mapping[str, object]
    build: Callable[[ArrayWriter], None]
    sources: Sources | None
    md5: Callable[[Path], str]
    resumable: bool = False

    @property
    def key(self) -> str:
        """The store's folder name."""
        text = json.dumps([self.name, self.version, self.settings], sort_keys=True)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def find_store(cache: Path, recipe: Recipe, *, thorough: bool = False) -> Store | None:
    """The store if it is there, whole and current; see `open_current`."""
    try:
        return open_current(cache / recipe.key, recipe.sources, recipe.md5, thorough=thorough)
    except NotCurrentError:
        return None


def open_store(cache: Path, recipe: Recipe, accept: Accept, say: Say) -> Store:
    """Open the store of `recipe` in `cache`, preparing it first if need be.

    accept: is given the sources' md5s and raises UserError if they may not be used.
    Raises UserError if the sources cannot be read or the cache not be written.
    """
    store = find_store(cache, recipe)
    if store is None:
        try:
            make_folder(cache)
            with held(cache / f"{recipe.key}.lock", f"preparing {recipe.name}", say):
                return _open_or_prepare(cache / recipe.key, recipe, accept, say)
        except OSError as error:
            store = find_store(cache, recipe, thorough=True)  # who may only read needs no lock
            if store is None:
                raise UserError(
                    f"cannot keep the prepared {recipe.name} data in {cache} "
                    f"({error.strerror or error}); free space there or make it writable, or choose "
                    "another folder with paths.cache=DIR"
                ) from error
    accept(store.md5s)
    return store


def _open_or_prepare(folder: Path, recipe: Recipe, accept: Accept, say: Say) -> Store:
    """The work under the lock. Raises OSError for the cache, UserError for the sources."""
    try:
        store = open_current(folder, recipe.sources, recipe.md5, thorough=True)
    except NotCurrentError as error:
        reason = str(error)
    else:
        accept(store.md5s)
        return store
    sources = {name: _state(path, recipe.md5) for name, path in (recipe.sources or {}).items()}
    accept({name: state.checksum for name, state in sources.items()})
    if reason:
        say(f"the prepared {recipe.name} data in {folder} {reason}; preparing it again")
    else:
        say(f"preparing {recipe.name} (once; kept in {folder})")
    _prepare(folder, recipe, sources)
    return open_current(folder, recipe.sources, recipe.md5, thorough=False)


def _state(path: Path, md5: Callable[[Path], str]) -> FileState:
    """A source's state before it is read."""
    try:
        before = FileState.of(path, "")
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})") from error
    return replace(before, checksum=md5(path))


def _prepare(folder: Path, recipe: Recipe, sources: Mapping[str, FileState]) -> None:
    """Build in a temporary folder, then put it in the store's place. Needs the store's lock."""
    cache = folder.parent
    _remove_leftovers(folder)  # of a killed preparation
    try:
        temporary = _partial_folder(folder) if recipe.resumable else _temporary_folder(folder)
        journal = _journal(temporary, sources) if recipe.resumable else None
        writer = ArrayWriter(temporary, journal)
        recipe.build(writer)
        _check_unchanged(recipe, sources)
        if journal is not None:
            journal.remove()
        Manifest(folder.name, dict(sources), writer.states).write(temporary)
        _sync_folder(temporary)
        if folder.exists():
            folder.rename(_temporary_folder(folder) / "replaced")
        temporary.rename(folder)
        _sync_folder(cache)
    finally:
        _remove_leftovers(folder)


def _check_unchanged(recipe: Recipe, sources: Mapping[str, FileState]) -> None:
    """What was hashed must be what was read."""
    for name, path in (recipe.sources or {}).items():
        if not path.exists() or not sources[name].unchanged(path):
            raise UserError(f"{path} changed while it was read; run again when it is complete")


def _temporary_folder(folder: Path) -> Path:
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    share(made)  # mkdtemp's are private; a cache may be a group's
    return made


def _partial_folder(folder: Path) -> Path:
    """Where a resumable preparation works, and finds what one before it has left."""
    partial = folder.parent / f".{folder.name}{PARTIAL}"
    partial.mkdir(exist_ok=True)
    share(partial)
    return partial


def _journal(partial: Path, sources: Mapping[str, FileState]) -> Journal:
    """The journal of what `partial` holds, which is emptied if it was made from other sources."""
    journal = Journal(partial, {name: state.checksum for name, state in sources.items()})
    if journal.is_new:
        for array in partial.glob("*.npy"):
            array.unlink()
    return journal


def _remove_leftovers(folder: Path) -> None:
    for leftover in folder.parent.glob(f".{folder.name}.*"):
        if not leftover.name.endswith(PARTIAL):
            shutil.rmtree(leftover, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder reach the disk, where the system can do that for folders."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
