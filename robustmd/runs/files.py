"""The names of the files in a run directory, and writing one so that it is whole or not there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

CONFIG = "config.yaml"
METRICS = "metrics.csv"
WEIGHTS = "weights.csv"
SUMMARY = "summary.json"
ENVIRONMENT = "environment.json"
PREDICTIONS = "predictions.npz"
LOG = "train.log"
CHECKPOINTS = "checkpoints"
FINAL_MODEL = "final.pt"
LOCK = "lock"
EXAMPLES = "examples.png"
LICENCES = "licences"
ALL = frozenset(
    {CONFIG, METRICS, WEIGHTS, SUMMARY, ENVIRONMENT, PREDICTIONS, LOG, CHECKPOINTS, LOCK}
    | {EXAMPLES, LICENCES}
)
LEFTOVER = r"\..+\.(csv|json|npz|pt|yaml|png)\.\w{8}"  # of a file whose writer was killed

METRICS_HEADER = ("iteration", "seconds", "split", "domain", "loss", "accuracy", "examples")
WEIGHTS_HEADER = ("iteration", "domain", "weight", "batch_loss")


def write_atomically(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file beside its place, flush it to the disk, and rename it there.

    Whatever happens on the way, `path` is either as it was or whole. An OSError names `path`.
    """
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


def append(path: Path, text: str) -> None:
    """Add text to a file that is there; one that has gone is not begun anew."""
    with _named_in_errors(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        with os.fdopen(descriptor, "ab") as stream:
            stream.write(text.encode("utf-8"))


@dataclass(frozen=True)
class Extent:
    """How far a growing file has come, and the sha256 of its bytes up to there."""

    length: int
    digest: str

    @classmethod
    def of(cls, path: Path, length: int | None = None) -> Extent:
        """The first `length` bytes (None: all), which are made to last on the disk."""
        with _named_in_errors(path), path.open("rb") as stream:
            content = stream.read() if length is None else stream.read(length)
            os.fsync(stream.fileno())
        return cls(len(content), hashlib.sha256(content).hexdigest())


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
