"""The names of the files in a run directory, and writing one so that it is whole or not there."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
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

METRICS_HEADER = ("iteration", "seconds", "split", "domain", "loss", "accuracy", "examples")
WEIGHTS_HEADER = ("iteration", "domain", "weight", "batch_loss")


def write_atomically(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file beside its place, flush it to the disk, and rename it there.

    Whatever happens on the way, `path` is either as it was or whole.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
        _sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
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
