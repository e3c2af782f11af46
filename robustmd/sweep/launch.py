"""The runs of a sweep side by side: N processes, each with one run after another."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from types import FrameType

from robustmd.config.settings import Config
from robustmd.errors import UserError
from robustmd.runs.sweep_note import SweepNote
from robustmd.sweep.jobs import Ended, Job, run_job
from robustmd.sweep.picture import Picture, make_picture
from robustmd.sweep.places import places_of, processes
from robustmd.sweep.workers import Worker
from robustmd.training.progress import ONE_PRESS

_LOOK = 0.5  # seconds between two looks at the clock


def launch(jobs: Sequence[Job], config: Config, note: SweepNote) -> list[Ended | None]:
    """Run the jobs on this machine. Returns how each ended, in order; None: it never began, since
    the sweep was asked to stop (Ctrl-C, SIGTERM), and those under way have written a checkpoint.

    config: that of one of them, for its device and how many go side by side. note: is told of each
    run that begins. Raises UserError.
    """
    places = places_of(config.runtime.device, len(jobs), config.jobs, config.jobs_per_device)
    if len(places) > 1:
        with make_picture(jobs, len(places)) as picture:
            return SideBySide(jobs, places, picture, note).run()
    ended: list[Ended | None] = [None] * len(jobs)
    for job in jobs:
        note.add_run()
        ended[job.number] = last = run_job(job)
        if last.stops:
            break
    return ended


def refuse_torchrun() -> None:
    """Raises UserError where torchrun has started this process for a single run."""
    if processes() > 1:
        raise UserError(
            "torchrun: is for one run; leave it out, and the runs of a sweep go side by side"
        )


class SideBySide:
    """Gives every worker its next job until none is left, or a signal comes.

    Args:
        jobs: in order.
        places: the environment of each worker.
        picture, note: are told.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        places: Sequence[dict[str, str]],
        picture: Picture,
        note: SweepNote,
    ) -> None:
        self._places, self._picture, self._note = places, picture, note
        self._waiting = deque(jobs)
        self._workers: list[Worker] = []
        self._ended: list[Ended | None] = [None] * len(jobs)
        self._stop_code: int | None = None
        self._stopped_at = 0.0

    def run(self) -> list[Ended | None]:
        """How the jobs ended, in order; None: one never began."""
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
            finally:
                for worker in self._workers:
                    worker.close()
        return self._ended

    def _listen(self, place: int) -> None:
        worker = self._workers[place]
        job = worker.job
        end = worker.end()
        for line in worker.lines():  # after `end`: what was printed before it is all there
            self._picture.said(job, line)
        if end is None:
            return
        if end.killed_by is None:
            self._ended[job.number] = end.value
            if end.value.stops:
                self._stop(end.value.stops)
        else:
            self._ended[job.number] = self._killed(job, end.killed_by)
        self._picture.ended(job)
        self._feed(place)

    def _killed(self, job: Job, by: str) -> Ended:
        if by == "SIGTERM" and self._stop_code is not None:  # before it had begun to train
            return Ended(self._stop_code, "interrupted before training", stops=self._stop_code)
        memory = " (often too little memory: a smaller jobs=N)" * (by == "SIGKILL")
        words = f"its process ended with {by}{memory}; the same command goes on"
        self._picture.said(job, f"  failed: {words}")
        return Ended(1, words)

    def _feed(self, place: int) -> None:
        """Give a worker its next job; one is begun where there is none that lives."""
        if self._stop_code is not None or not self._waiting:
            return
        if place == len(self._workers):
            self._workers.append(Worker(run_job, self._places[place]))
        elif not self._workers[place].is_alive:
            self._workers[place].close()
            self._workers[place] = Worker(run_job, self._places[place])
        job = self._waiting.popleft()
        self._picture.started(job)
        self._note.add_run()
        self._workers[place].give(job)

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
