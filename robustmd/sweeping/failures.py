"""What failed in a sweep: Hydra shows only the first failure, so the jobs write theirs down."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import traceback
from dataclasses import dataclass
from pathlib import Path

from robustmd.errors import UserError

RECORD = "ROBUSTMD_SWEEP_FAILURES"  # names the record's file, where all jobs can write it


@dataclass(frozen=True)
class Failure:
    """One job that did not finish."""

    exit_code: int
    message: str
    title: str
    directory: str | None = None

    @classmethod
    def of(cls, error: Exception, title: str, directory: str | None = None) -> Failure:
        """A user's mistake is its line and code 2; the rest is ours: code 1, with the place."""
        if isinstance(error, UserError):
            return cls(2, str(error), title, directory)
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return cls(
            1, f"a bug of ours at {where}: {type(error).__name__}: {error}", title, directory
        )


def note_failure(failure: Failure) -> None:
    """Add a line to the record, if there is one: jobs of a sweep may run in other processes."""
    with contextlib.suppress(KeyError, OSError):
        record = Path(os.environ[RECORD])
        record.parent.mkdir(parents=True, exist_ok=True)
        with record.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(dataclasses.asdict(failure)) + "\n")


def take_failures() -> list[Failure]:
    """All failures noted, in the order they came; the record goes, and so does its variable."""
    record = Path(os.environ.pop(RECORD, os.devnull))
    try:
        lines = record.read_text("utf-8").splitlines()
    except OSError:
        return []
    if lines:
        record.unlink()
        with contextlib.suppress(OSError):  # nothing else was put there
            record.parent.rmdir()
    return [Failure(**json.loads(line)) for line in lines]
