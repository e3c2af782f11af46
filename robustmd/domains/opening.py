"""Opening a prepared store: is it whole, and of the present sources?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robustmd.domains.arrays import file_of, open_array
from robustmd.domains.checksums import array_sha256
from robustmd.domains.manifest import FileState, Manifest
from robustmd.errors import UserError

Sources = Mapping[str, Path]


@dataclass(frozen=True)
class Store:
    """arrays: read-only memory maps; checksums: their `array_sha256`; md5s: of the sources."""

    arrays: Mapping[str, np.ndarray]
    checksums: Mapping[str, str]
    md5s: Mapping[str, str]


class NotCurrentError(Exception):
    """Why the store on disk cannot be used as it is; an empty reason if there is none yet."""


def open_current(
    folder: Path, sources: Sources | None, md5: Callable[[Path], str], *, thorough: bool
) -> Store:
    """Map the arrays of the store in `folder`.

    sources: file name → path of the files it should be made from; None: whichever it was made from
    md5: checksum of a source's content
    thorough: compare checksums where stamps differ, and note the new stamps in the manifest, where
        that can be written; otherwise such a difference is reason enough.

    Raises NotCurrentError if the store has to be prepared (again), UserError if a source cannot be
    read.
    """
    manifest = _manifest(folder)
    states, arrays = {}, {}
    for name, state in manifest.arrays.items():
        arrays[name], states[name] = _array(folder, name, state, thorough)
    known = manifest.sources
    if sources is not None:
        if set(known) != set(sources):
            raise NotCurrentError("is made of other files")
        known = {name: _source(path, known[name], md5, thorough) for name, path in sources.items()}
    renewed = Manifest(manifest.key, known, states)
    if renewed != manifest:
        with suppress(OSError):  # then the next start compares checksums as well
            renewed.write(folder)
    return Store(
        arrays,
        {name: state.checksum for name, state in states.items()},
        {name: state.checksum for name, state in known.items()},
    )


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


def _source(path: Path, known: FileState, md5: Callable[[Path], str], thorough: bool) -> FileState:
    try:
        if known.unchanged(path):
            return known
        if thorough and md5(path) == known.checksum:
            return FileState.of(path, known.checksum)
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})") from error
    raise NotCurrentError(f"is out of date ({path} has changed)")


def _array(
    folder: Path, name: str, known: FileState, thorough: bool
) -> tuple[np.ndarray, FileState]:
    path = file_of(folder, name)
    try:
        array = open_array(path)
        if known.unchanged(path):
            return array, known
        if thorough and array_sha256(array) == known.checksum:
            return array, FileState.of(path, known.checksum)
    except (OSError, ValueError, EOFError) as error:
        raise NotCurrentError(f"is damaged ({path.name}: {error})") from error
    raise NotCurrentError(f"is damaged ({path.name} has changed)")
