"""Writes a run directory. Rows are appended, everything else replaced whole."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import yaml

from robustmd.runs import files, lock


class RunDirectory:
    """One run's directory and what has been written to it.

    Args:
        path: `<outputs>/<data>/<method>/<8 hex>/seed=<n>`; made by `create()`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    # --- what is there -----------------------------------------------------------------------

    def summary(self) -> dict[str, Any] | None:
        """summary.json, or None where there is none or it cannot be read as one."""
        return self._json(files.SUMMARY)

    def environment(self) -> dict[str, Any] | None:
        """environment.json, likewise."""
        return self._json(files.ENVIRONMENT)

    def config(self) -> dict[str, Any] | None:
        """config.yaml as plain data, likewise."""
        try:
            found = yaml.safe_load((self.path / files.CONFIG).read_text("utf-8"))
        except (OSError, ValueError, yaml.YAMLError):
            return None
        return found if isinstance(found, dict) else None

    def _json(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads((self.path / name).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    # --- writing -----------------------------------------------------------------------------

    def locked(self) -> AbstractContextManager[None]:
        """Make the directory and hold its lock: one process at a time."""
        self.path.mkdir(parents=True, exist_ok=True)
        return lock.held(self.path / files.LOCK)

    def begin(self, config: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
        """Start from nothing: whatever an earlier try left is removed first."""
        for child in self.path.iterdir():
            if child.name != files.LOCK:
                shutil.rmtree(child) if child.is_dir() else child.unlink()
        (self.path / files.CHECKPOINTS).mkdir()
        text = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)
        self._replace(files.CONFIG, text)
        self.write_environment(environment)
        for name, header in (
            (files.METRICS, files.METRICS_HEADER),
            (files.WEIGHTS, files.WEIGHTS_HEADER),
        ):
            self._replace(name, ",".join(header) + "\n")

    def write_environment(self, environment: Mapping[str, Any]) -> None:
        self._replace(files.ENVIRONMENT, json.dumps(environment, indent=2) + "\n")

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        self._replace(files.SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")

    def append_metrics(self, rows: Iterable[Sequence[Any]]) -> None:
        """Rows of metrics.csv, in the order of its header."""
        self._append(files.METRICS, rows)

    def append_weights(self, rows: Iterable[Sequence[Any]]) -> None:
        """Rows of weights.csv, in the order of its header."""
        self._append(files.WEIGHTS, rows)

    def append_log(self, line: str) -> None:
        """One line of train.log, with the time of day."""
        with (self.path / files.LOG).open("a", encoding="utf-8") as stream:
            stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")

    def write_predictions(self, arrays: Mapping[str, Any]) -> None:
        import numpy as np  # noqa: PLC0415 - readers of runs need no numpy

        files.write_atomically(
            self.path / files.PREDICTIONS,
            lambda stream: np.savez_compressed(stream, **arrays),  # type: ignore[arg-type]
        )

    # --- rows and where they end -------------------------------------------------------------

    def lengths(self) -> dict[str, int]:
        """Bytes of the files that grow: a checkpoint keeps them."""
        return {name: (self.path / name).stat().st_size for name in (files.METRICS, files.WEIGHTS)}

    def cut_back(self, lengths: Mapping[str, int]) -> None:
        """Shorten the growing files to a checkpoint's lengths: later rows are not its."""
        for name, length in lengths.items():
            os.truncate(self.path / name, length)

    def _append(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        with (self.path / name).open("a", encoding="utf-8", newline="") as stream:
            stream.write(text.getvalue())

    def _replace(self, name: str, text: str) -> None:
        files.write_atomically(self.path / name, lambda stream: _write(stream, text))


def _write(stream: Any, text: str) -> None:
    stream.write(text.encode("utf-8"))
