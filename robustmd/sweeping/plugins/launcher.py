"""`hydra/launcher=side_by_side`: the runs of a sweep in several processes, one thread each."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import wait
from types import FrameType
from typing import Any

from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from hydra.types import TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

from robustmd.sweeping.failures import Failure, note_failure
from robustmd.sweeping.picture import Picture, make_picture
from robustmd.sweeping.slots import slots
from robustmd.sweeping.workers import End, Worker

_LOOK = 0.5  # seconds between two looks at the clock


class SideBySide(BasicLauncher):
    """Hydra's launcher for this machine: N processes, each with one run after another.

    The task has to be picklable by its name. With one run, or room for one, it is Hydra's basic
    launcher.

    Args:
        n_jobs: N; None: one a core, or `per_device` a GPU where runs have one.
        per_device: runs that share a GPU, where N is None.
    """

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
        if len(places) == 1:
            return super().launch(job_overrides, initial_job_idx)
        setup_globals()
        jobs = (
            self._composed(overrides, initial_job_idx + number)
            for number, overrides in enumerate(job_overrides)
        )
        with make_picture(job_overrides, len(places)) as picture:
            return _Sweep(self.task_function, places, picture).run(jobs, total)

    def _composed(self, overrides: Sequence[str], number: int) -> DictConfig:
        assert self.hydra_context is not None
        assert self.config is not None
        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = config.hydra.job.num = number
        return config


class _Job:
    """The task, as a process of its own calls it with a config of Hydra's."""

    def __init__(self, task: TaskFunction) -> None:
        self._task = task

    def __call__(self, composed: DictConfig) -> Any:
        setup_globals()
        HydraConfig.instance().set_config(composed)
        ours = [str(key) for key in composed if key != "hydra"]
        return self._task(OmegaConf.masked_copy(composed, ours))


class _Sweep:
    """Who does what: gives every worker its next job until none is left, or a signal comes."""

    def __init__(
        self, task: TaskFunction, places: Sequence[dict[str, str]], picture: Picture
    ) -> None:
        self._job, self._places, self._picture = _Job(task), places, picture
        self._workers: list[Worker] = []
        self._stop_code: int | None = None

    def run(self, jobs: Iterator[Any], total: int) -> list[JobReturn]:
        """The jobs' returns, in order."""
        self._jobs = enumerate(jobs)
        self._returns = [JobReturn(status=JobStatus.UNKNOWN) for _ in range(total)]
        with ExitStack() as stack:
            stack.callback(self._close)
            stack.enter_context(self._signals_stop())
            self._workers = [Worker(self._job, place) for place in self._places]
            for worker in self._workers:
                self._feed(worker)
            while busy := [worker for worker in self._workers if worker.job is not None]:
                wait([one for worker in busy for one in worker.awaited], _LOOK)
                for worker in busy:
                    self._listen(worker)
        if self._stop_code is not None:
            raise SystemExit(self._stop_code)
        return self._returns

    def _listen(self, worker: Worker) -> None:
        number = worker.job
        assert number is not None
        end = worker.end()
        for line in worker.lines():  # after `end`: what was printed before it is all there
            self._picture.said(number, line)
        if end is None:
            return
        self._picture.ended(number, end.killed_by)
        if end.exit_code is not None:  # a run that was asked to stop means the sweep
            self._stop(end.exit_code)
        elif end.killed_by is None:
            self._returns[number].status = JobStatus.COMPLETED
            self._returns[number].return_value = end.value
        elif self._stop_code is None:
            self._note_death(number, end)
            place = self._workers.index(worker)
            worker.close()
            self._workers[place] = worker = Worker(self._job, self._places[place])
        self._feed(worker)

    def _feed(self, worker: Worker) -> None:
        if self._stop_code is None and (job := next(self._jobs, None)) is not None:
            self._picture.started(job[0])
            worker.give(*job)

    def _note_death(self, number: int, end: End) -> None:
        memory = " (often too little memory: a smaller jobs=N)" * (end.killed_by == "SIGKILL")
        words = f"its process ended with {end.killed_by}{memory}; the same command goes on"
        self._picture.said(number, f"  failed: {words}")
        self._returns[number].status = JobStatus.FAILED
        note_failure(Failure(1, words, self._picture.title(number)))

    def _stop(self, code: int) -> None:
        """No job is begun any more; those under way stop at their next checkpoint."""
        if self._stop_code is None:
            self._stop_code = code
            for worker in self._workers:
                worker.signal(signal.SIGTERM)

    @contextmanager
    def _signals_stop(self) -> Iterator[None]:
        def received(number: int, _: FrameType | None) -> None:
            if self._stop_code is not None:  # a second Ctrl-C waits for no checkpoint
                raise KeyboardInterrupt
            self._stop(128 + number)

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, received) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _close(self) -> None:
        for worker in self._workers:
            worker.close()
