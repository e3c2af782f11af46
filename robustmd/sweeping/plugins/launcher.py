"""`hydra/launcher=side_by_side`: the runs of a sweep in several processes, one thread each."""

from __future__ import annotations

import atexit
import os
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import wait
from types import FrameType
from typing import Any, ClassVar

from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from omegaconf import DictConfig, OmegaConf, open_dict

from robustmd.sweeping.failures import RECORD, Failure
from robustmd.sweeping.picture import Picture, make_picture
from robustmd.sweeping.slots import slots
from robustmd.sweeping.workers import Worker
from robustmd.training.progress import ONE_PRESS

_LOOK = 0.5  # seconds between two looks at the clock


class SideBySide(BasicLauncher):
    """Hydra's launcher for this machine: N processes, each with one run after another.

    The task has to be picklable by its name, with a list `failures` that each job adds to. With
    one run, or room for one, it is Hydra's basic launcher. The processes stay from launch to
    launch, for a sweeper that gives its jobs batch after batch, until `close`.

    Args:
        n_jobs: N; None: one a core, or `per_device` a GPU where runs have one.
        per_device: runs that share a GPU, where N is None.
    """

    _workers: ClassVar[list[Worker]] = []  # of the command: who ends it knows no launcher

    @classmethod
    def close(cls) -> None:
        """Let the processes go."""
        while cls._workers:
            cls._workers.pop().close()

    def __init__(self, n_jobs: int | None = None, per_device: int = 1) -> None:
        super().__init__()
        self._n_jobs, self._per_device = n_jobs, per_device

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs; one JobReturn each, in order.

        Raises:
            SystemExit: it was asked to stop (Ctrl-C, SIGTERM): no run is begun, those under way
                have written a checkpoint.
        """
        assert self.config is not None
        assert self.task_function is not None
        total = len(job_overrides)
        places = slots(self.config.runtime.device, total, self._n_jobs, self._per_device)
        if len(places) == 1 and not self._workers:
            return super().launch(job_overrides, initial_job_idx)
        os.environ.pop(RECORD, None)  # the processes' failures come with what they return
        setup_globals()
        jobs = (
            self._composed(overrides, initial_job_idx + number)
            for number, overrides in enumerate(job_overrides)
        )
        with make_picture(job_overrides, len(places), initial_job_idx) as picture:
            sweep = _Sweep(self.task_function, places, self._workers, picture)
            return sweep.run(jobs, total)

    def _composed(self, overrides: Sequence[str], number: int) -> DictConfig:
        assert self.hydra_context is not None
        assert self.config is not None
        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = config.hydra.job.num = number
        return config


def _job(task: Any, composed: DictConfig) -> tuple[Any, list[Failure], int | None]:
    """The task with a config of Hydra's, in a process of its own. Returns the task's value, its
    failures, and an exit code where it means the sweep."""
    setup_globals()
    HydraConfig.instance().set_config(composed)
    ours = [str(key) for key in composed if key != "hydra"]
    task.failures.clear()
    try:
        value = task(OmegaConf.masked_copy(composed, ours))
    except SystemExit as stop:
        return None, task.failures, stop.code if isinstance(stop.code, int) else 1
    return value, task.failures, None


class _Sweep:
    """Who does what: gives every worker its next job until none is left, or a signal comes.

    Args:
        task: what the jobs are for; its failures are added to.
        places: the environment of each worker.
        workers: those there are; what is missing, or has died, is added.
        picture: is told.
    """

    def __init__(
        self, task: Any, places: Sequence[dict[str, str]], workers: list[Worker], picture: Picture
    ) -> None:
        self._task, self._places, self._workers, self._picture = task, places, workers, picture
        self._stop_code: int | None = None
        self._stopped_at = 0.0

    def run(self, jobs: Iterator[Any], total: int) -> list[JobReturn]:
        """The jobs' returns, in order."""
        self._jobs, self._waiting = jobs, deque(range(total))
        self._returns = [JobReturn(status=JobStatus.UNKNOWN) for _ in range(total)]
        with self._signals_stop():
            try:
                for place in range(len(self._places)):
                    self._feed(place)
                while busy := [i for i, one in enumerate(self._workers) if one.job is not None]:
                    wait([one for i in busy for one in self._workers[i].awaited], _LOOK)
                    for i in busy:
                        self._listen(i)
                    self._picture.look()
            except Exception:
                self._stop(1)  # those under way keep what they have
                raise
        if self._stop_code is not None:
            raise SystemExit(self._stop_code)
        assert all(one.status != JobStatus.UNKNOWN for one in self._returns)
        return self._returns

    def _listen(self, place: int) -> None:
        worker = self._workers[place]
        number = worker.job
        assert number is not None
        end = worker.end()
        for line in worker.lines():  # after `end`: what was printed before it is all there
            self._picture.said(number, line)
        if end is None:
            return
        if end.killed_by is None:
            value, failures, stop_code = end.value
            self._task.failures.extend(failures)
            self._returns[number].status = JobStatus.COMPLETED
            self._returns[number].return_value = value
            if stop_code is not None:  # a run that was asked to stop means the sweep
                self._stop(stop_code)
        elif self._stop_code is None or end.killed_by != "SIGTERM":
            self._note_death(number, end.killed_by)
        self._picture.ended(number, end.killed_by)
        self._feed(place)

    def _feed(self, place: int) -> None:
        """Give a worker its next job; one is begun where there is none that lives."""
        if self._stop_code is not None or not self._waiting:
            return
        if place < len(self._workers) and not self._workers[place].is_alive:
            self._workers[place].close()
            self._workers[place] = Worker(partial(_job, self._task), self._places[place])
        elif place == len(self._workers):
            self._workers.append(Worker(partial(_job, self._task), self._places[place]))
        number = self._waiting.popleft()
        self._picture.started(number)
        self._workers[place].give(number, next(self._jobs))

    def _note_death(self, number: int, killed_by: str) -> None:
        memory = " (often too little memory: a smaller jobs=N)" * (killed_by == "SIGKILL")
        words = f"its process ended with {killed_by}{memory}; the same command goes on"
        self._picture.said(number, f"  failed: {words}")
        self._returns[number].status = JobStatus.FAILED
        self._returns[number].return_value = RuntimeError(words)
        self._task.failures.append(Failure(1, words, self._picture.title(number)))

    def _stop(self, code: int) -> None:
        """No job is begun any more; those under way stop at their next checkpoint."""
        if self._stop_code is None:
            self._stop_code, self._stopped_at = code, time.monotonic()
            for worker in self._workers:
                worker.signal(signal.SIGTERM)

    @contextmanager
    def _signals_stop(self) -> Iterator[None]:
        def received(number: int, _: FrameType | None) -> None:
            if self._stop_code is None:
                self._stop(128 + number)
            elif time.monotonic() - self._stopped_at > ONE_PRESS:  # waits for no checkpoint
                for worker in self._workers:
                    worker.signal(signal.SIGKILL)
                raise KeyboardInterrupt

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, received) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


atexit.register(SideBySide.close)  # before multiprocessing's own, which waits for the processes
