"""Writes a run directory. Rows are appended, everything else replaced whole."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from robustmd.errors import printable
from robustmd.runs import files, lock
from robustmd.runs.untrusted import Unreadable, read_record


class RunDirectory:
    """One run's directory, `<outputs>/<data>/<method>/<8 hex>/seed=<n>`, made by `locked()`.

    further: whether metrics beside loss and accuracy are measured, into measures.csv. `appended` is
    told the name and the rows after each `append`.
    """

    def __init__(self, path: Path, *, further: bool = False) -> None:
        self.path = path
        self.appended: Callable[[str, Sequence[Sequence[Any]]], None] | None = None
        self.growing = (files.METRICS, files.WEIGHTS, *([files.MEASURES] if further else []))

    def record(self, name: str) -> dict[str, Any] | None:
        """config.yaml, environment.json or summary.json as plain data; None where it cannot be
        read. What looks like a reference in it stays text."""
        try:
            return read_record(self.path / name)
        except Unreadable:
            return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the directory and hold its lock: one process at a time. Raises UserError: another
        process has it; OSError: it cannot be made, or holds what leads out of it."""
        made = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        self.path.mkdir(parents=True, exist_ok=True)
        with lock.held(self.path):
            files.refuse_foreign(self.path)
            for folder in (self.path, self.path / files.CHECKPOINTS):
                files.remove_leftovers(folder)
            try:
                yield
            finally:
                self._remove_bare(made)

    def _remove_bare(self, made: Sequence[Path]) -> None:
        """A run that was refused before it began leaves none of the folders made for it; its lock
        is held."""
        with suppress(OSError):
            if {child.name for child in self.path.iterdir()} <= files.LOCKING:
                for child in self.path.iterdir():
                    child.unlink()
                for folder in made or (self.path,):
                    folder.rmdir()

    def begin(
        self,
        config: Mapping[str, Any],
        environment: Mapping[str, Any],
        summary: Mapping[str, Any],
    ) -> None:
        """Start from nothing. summary.json comes first, so that a directory without one is damaged;
        then whatever an earlier try left is removed, checkpoints before what they belong to."""
        self.write_record(files.SUMMARY, summary)
        for name in sorted(files.ALL - {*files.LOCKING, files.SUMMARY}):
            if os.path.lexists(self.path / name):
                files.remove(self.path / name)
        (self.path / files.CHECKPOINTS).mkdir()
        self.write_record(files.CONFIG, config)
        self.write_record(files.ENVIRONMENT, environment)
        for name in self.growing:
            self.write(name, (",".join(files.COLUMNS[name]) + "\n").encode())

    def write(self, name: str, content: bytes) -> None:
        """A file, whole."""
        files.write_atomically(self.path / name, lambda stream: stream.write(content))

    def write_record(self, name: str, record: Mapping[str, Any]) -> None:
        """config.yaml, environment.json or summary.json."""
        if name == files.CONFIG:
            text = yaml.safe_dump(record, sort_keys=False, allow_unicode=True)
            if "\x85" in text:  # which PyYAML writes as it is, and reads as a line break
                text = yaml.safe_dump(record, sort_keys=False)
        else:  # a folder's name in environment.json may be no text: it is written as escapes
            strict = json.loads(json.dumps(record), parse_constant=lambda _: None)  # no NaN in JSON
            text = json.dumps(strict, indent=2, ensure_ascii=name == files.ENVIRONMENT) + "\n"
        self.write(name, text.encode())

    def write_predictions(self, arrays: Mapping[str, Any]) -> None:
        import numpy as np  # noqa: PLC0415 - readers of runs need no numpy

        files.write_atomically(
            self.path / files.PREDICTIONS,
            lambda stream: np.savez_compressed(stream, **arrays),  # type: ignore[arg-type]
        )

    def append(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        """Rows of a CSV file, in the order of its header."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        files.append(self.path / name, text.getvalue())
        if self.appended is not None:
            self.appended(name, rows)

    def append_log(self, line: str) -> None:
        """One line of train.log, with the time of day."""
        text = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {printable(line)}\n"
        files.append(self.path / files.LOG, text, create=True)

    def lengths(self) -> dict[str, int]:
        """How long the files that grow are, once that is safe on the disk."""
        return {name: files.synced_length(self.path / name) for name in self.growing}

    def cut_back(self, lengths: Mapping[str, int]) -> None:
        """Shorten the growing files to where a checkpoint was. Raises Unreadable, and cuts none,
        where one is shorter than that."""
        for name in self.growing:
            try:
                there = files.synced_length(self.path / name)
            except FileNotFoundError:
                raise Unreadable(f"{name} has gone") from None
            if there < lengths[name]:
                raise Unreadable(f"{name} is shorter than it was then")
        for name in self.growing:
            files.truncate(self.path / name, lengths[name])


class ReadDirectory(RunDirectory):
    """The same for a process that trains beside the one that writes: nothing is written."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        yield

    def _nothing(self, *_: Any, **__: Any) -> None:
        pass

    begin = write = write_predictions = append = append_log = cut_back = _nothing  # type: ignore[assignment]
