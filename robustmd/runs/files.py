"""The names of the files in a run directory, and the one way to open them, to read or to write; and
which folders are run directories.

A run directory may be somebody else's. No symbolic link in it is followed, and no pipe or device
keeps anybody waiting: what is no plain file raises OSError before a byte is read or written.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

CONFIG = "config.yaml"
METRICS = "metrics.csv"
WEIGHTS = "weights.csv"
MEASURES = "measures.csv"
SUMMARY = "summary.json"
ENVIRONMENT = "environment.json"
PREDICTIONS = "predictions.npz"
LOG = "train.log"
CHECKPOINTS = "checkpoints"
FINAL_MODEL = "checkpoints/final.pt"
BEST_MODEL = "checkpoints/best.pt"
LOCK = "lock"
HOLDER = "holder.txt"  # who has the lock
LOCKING = frozenset({LOCK, HOLDER})
EXAMPLES = "examples.png"
TRACKING = "tracking.json"
ALL = frozenset(
    {CONFIG, METRICS, WEIGHTS, MEASURES, SUMMARY, ENVIRONMENT, PREDICTIONS, LOG, CHECKPOINTS, LOCK}
    | {EXAMPLES, TRACKING, HOLDER}
)
LEFTOVER = r"\..+\.(csv|json|npz|pt|txt|yaml|png)\.\w{8}"  # of a file whose writer was killed

_ITERATION, _PLACE = {"iteration": int}, {"split": str, "domain": str}
_MEASURED = {"loss": float, "accuracy": float | None, "examples": int}
COLUMNS: Mapping[str, Mapping[str, Any]] = {
    METRICS: {**_ITERATION, "seconds": float, **_PLACE, **_MEASURED},
    WEIGHTS: {**_ITERATION, "domain": str, "weight": float, "batch_loss": float},
    MEASURES: {**_ITERATION, **_PLACE, "metric": str, "value": float},
}

LARGEST = 2**34  # bytes of any file of a run; one with holes may claim more than a disk has

# Zero where a system knows none of them.
_OWN_ONLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def opened(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of the plain file `path`. Raises OSError: it is a symbolic link, a pipe, a
    folder or a device; its folder is a link; it would be written and has a second name; or the
    system refuses."""
    with _named_in_errors(path):
        if path.is_symlink() or path.parent.is_symlink():
            raise OSError(errno.ELOOP, "is reached by a symbolic link: not followed")
        descriptor = os.open(path, flags | _OWN_ONLY, 0o666)
        found = os.fstat(descriptor)
        problem = "" if stat.S_ISREG(found.st_mode) else "is not a file"
        if found.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR):
            problem = "is one file with another (a hard link): not written; put a copy in its place"
        if problem:
            os.close(descriptor)
            raise OSError(errno.EINVAL, problem)
    return descriptor


def reading(path: Path, most: int = LARGEST) -> IO[bytes]:
    """The plain file `path`, to be read. Raises as `opened`, and OSError where it is larger."""
    stream = io.BufferedReader(io.FileIO(opened(path)))
    if os.fstat(stream.fileno()).st_size > most:
        stream.close()
        raise OSError(errno.EFBIG, f"has more than {most} bytes", str(path))
    return stream


def remove(path: Path) -> None:
    """Remove a file, or a folder with all in it; of a link the link."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def refuse_foreign(folder: Path) -> None:
    """Raises OSError where `folder` is no folder of its own, or holds what is neither file nor
    folder: a symbolic link leads out of it, a pipe keeps its reader waiting."""
    for path in (folder, *folder.iterdir()):
        mode = path.lstat().st_mode
        if not (stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and path != folder)):
            what = "is a symbolic link" if stat.S_ISLNK(mode) else "is neither file nor folder"
            raise OSError(errno.EINVAL, f"{what}, which no run has: remove it", str(path))


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file beside its place, flush it to the disk, and rename it there: `path` is either as
    it was or whole. An OSError names `path`."""
    with _named_in_errors(path):
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(0o666 & ~_umask())
            os.replace(temporary, path)  # noqa: PTH105 - the faults of tests/faults act on `os`
            _sync_folder(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise


def append(path: Path, text: str, *, create: bool = False) -> None:
    """Add text to a file; one that has gone is begun anew only where `create` says so."""
    with _named_in_errors(path):
        flags = os.O_WRONLY | os.O_APPEND | (os.O_CREAT if create else 0)
        with os.fdopen(opened(path, flags), "ab") as stream:
            stream.write(text.encode("utf-8"))


def truncate(path: Path, length: int) -> None:
    """Cut the file's end off."""
    descriptor = opened(path, os.O_WRONLY)
    try:
        os.ftruncate(descriptor, length)
    finally:
        os.close(descriptor)


def hex_digest(stream: IO[bytes], digest: hashlib._Hash) -> str:
    """Of all that is left of the stream, read in blocks."""
    while block := stream.read(2**20):
        digest.update(block)
    return digest.hexdigest()


def synced_length(path: Path) -> int:
    """The file's length, once its bytes last on the disk."""
    with _named_in_errors(path), reading(path) as stream:
        os.fsync(stream.fileno())
        return os.fstat(stream.fileno()).st_size


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed process left of files that it was writing."""
    for path in folder.glob(".*.*"):
        if path.is_file() and re.fullmatch(LEFTOVER, path.name):
            path.unlink()


@contextlib.contextmanager
def _named_in_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder last through a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
