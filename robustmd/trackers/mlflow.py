"""MLflow: the server of MLFLOW_TRACKING_URI, else `<outputs>/.trackers/mlflow/mlflow.db`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from robustmd.runs import lock
from robustmd.trackers.tracker import Step, TrackedRun, tracker

STATUS = {"finished": "FINISHED", "failed": "FAILED", "diverged": "FAILED"}  # else killed
METRICS, PARAMS, LONGEST = 1000, 100, 6000  # at most in a request, and letters of a value


@tracker("mlflow", needs="mlflow")
class MLflow:
    """A run of ours is one of MLflow's, found again by its tag `robustmd.id`."""

    def __init__(self, run: TrackedRun) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
        from mlflow import MlflowClient  # noqa: PLC0415 - an extra
        from mlflow.entities import Param  # noqa: PLC0415

        local, server = run.folder("mlflow"), os.environ.get("MLFLOW_TRACKING_URI")
        # Runs side by side make neither its tables nor an experiment twice.
        with lock.held(local / "lock", waiting_for="opening MLflow"):
            self._client = MlflowClient(server or f"sqlite:///{local}/mlflow.db?timeout=60")
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or run.experiment
            found = self._client.get_experiment_by_name(name)
            place = None if server else (local / "artifacts").as_uri()
            number = found.experiment_id if found else self._client.create_experiment(name, place)
        there = self._client.search_runs([number], f"tags.`robustmd.id` = '{run.id}'")
        tags = {"robustmd.id": run.id}
        own = there[0] if there else self._client.create_run(number, None, tags, run.name)
        self._is_new, self._id = not there, own.info.run_id
        self._client.update_run(self._id, "RUNNING")
        settings = [Param(_allowed(key), str(x)[:LONGEST]) for key, x in run.config.items()]
        for start in range(0, len(settings), PARAMS):
            self._client.log_batch(self._id, params=settings[start : start + PARAMS])
        self._last = cache(self._found)

    def _found(self, tag: str) -> int:
        """The last iteration whose number MLflow has had from an earlier try; -1: none."""
        history = [] if self._is_new else self._client.get_metric_history(self._id, tag)
        return max((metric.step for metric in history), default=-1)

    def log(self, steps: Sequence[Step]) -> None:
        from mlflow.entities import Metric  # noqa: PLC0415

        now = int(1000 * time.time())
        found = [(_allowed(tag), x, t) for t, numbers in steps for tag, x in numbers.items()]
        metrics = [Metric(tag, x, now, t) for tag, x, t in found if t > self._last(tag)]
        for start in range(0, len(metrics), METRICS):
            self._client.log_batch(self._id, metrics=metrics[start : start + METRICS])

    def end(self, status: str, table: Any, files: Mapping[str, Path]) -> None:
        if table is not None:
            self._client.log_text(self._id, table.to_csv(), "final.csv")
        for path in files.values():
            self._client.log_artifact(self._id, str(path))
        self._client.set_terminated(self._id, STATUS.get(status, "KILLED"))


def _allowed(name: str) -> str:
    """The same with each letter that MLflow refuses in a name as its number in hex."""
    return re.sub(r"[^/\w.\- :]", lambda found: f"_{ord(found[0]):x}", name)
