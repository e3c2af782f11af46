"""Signals that a launcher has taken before the run did."""

import signal
from types import FrameType

import pytest

from robustmd.training.progress import Interrupted, StopRequest


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2"])
def test_a_launcher_gets_the_preemption_it_waits_for_once_the_run_has_stopped(name: str) -> None:
    number, told = getattr(signal, name), []

    def queue_again(received: int, _: FrameType | None) -> None:
        told.append((received, stopped))

    before, stopped = signal.signal(number, queue_again), False
    try:
        with StopRequest() as stop:
            signal.raise_signal(number)
            assert told == []
            with pytest.raises(Interrupted, match=name):
                stop.check()
            stopped = True  # the checkpoint is written
        assert told == [(number, True)]
    finally:
        signal.signal(number, before)


def test_a_sigterm_that_a_launcher_has_taken_stays_its_own() -> None:
    told = []
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        with StopRequest() as stop:
            signal.raise_signal(signal.SIGTERM)
            stop.check()
        assert told == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
