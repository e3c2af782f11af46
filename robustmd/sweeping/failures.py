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

RECORD = "ROBUSTMD_SWEEP_FAILURES"  # the variable that names the record's file


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
    """Add a line to the record, where there is one; jobs of a sweep may run in other processes, and
    on machines that do not see it."""
    with contextlib.suppress(KeyError, OSError), Path(os.environ[RECORD]).open("a") as stream:
        stream.write(json.dumps(dataclasses.asdict(failure)) + "\n")


def read_failures(record: Path | None) -> list[Failure]:
    """All failures so far, in the order they came; none where there is no record."""
    if record is None or not record.exists():
        return []
    return [Failure(**json.loads(line)) for line in record.read_text("utf-8").splitlines()]
