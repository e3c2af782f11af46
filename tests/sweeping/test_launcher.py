"""Jobs that end in every way: each is counted once, and what failed is named."""

import io
import itertools
import time

import pytest
from hydra import compose, initialize_config_module
from hydra.core.utils import JobStatus, setup_globals
from jobs_of_workers import Runs

from robustmd.console import make_console
from robustmd.sweeping.picture import LivePicture
from robustmd.sweeping.plugins.launcher import _Sweep
from robustmd.training.progress import RunProgress


class Hours:
    """A clock that goes on when it is told to."""

    strftime, localtime, time = time.strftime, time.localtime, time.time

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_job_that_is_killed_is_named_and_the_next_has_a_new_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("ROBUSTMD_SWEEP_SIZE", "6")
    monkeypatch.setattr("robustmd.sweeping.picture._BETWEEN", 0.0)
    seeds, screen, task, workers = [0, 1, 2, 0, 3, 0], Terminal(), Runs(), []
    with initialize_config_module("robustmd.conf", version_base="1.3"):
        setup_globals()
        jobs = [compose("config", [f"seed={n}"], return_hydra_config=True) for n in (0, 1, 2, 3)]
    overrides = [["method=opt", f"seed={seed}"] for seed in seeds]
    try:
        with LivePicture(make_console(screen, width=60), overrides, 1) as picture:
            sweep = _Sweep(task, [{}], workers, picture)
            with pytest.raises(SystemExit) as stopped:
                sweep.run((jobs[seed] for seed in seeds), len(seeds))
    finally:
        for worker in workers:
            worker.close()
    assert stopped.value.code == 143
    *ended, waiting = (one.status for one in sweep._returns)
    assert ended == [
        *(JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.COMPLETED),
        *(JobStatus.COMPLETED, JobStatus.COMPLETED),
    ]
    assert waiting == JobStatus.UNKNOWN
    processes = [one.return_value[0] for one in sweep._returns[::2][:2]]
    assert len(set(processes)) == 2
    killed, refused = task.failures
    assert killed.title == "[run 2 of 6] seed=1"
    assert killed.message.startswith("its process ended with SIGKILL (often too little memory")
    assert (refused.exit_code, refused.message) == (2, "refused")
    said = screen.getvalue()
    assert said.count("2|   failed: its process ended with SIGKILL") == 1
    assert "1 of 6 ended, 1 running, 4 waiting" in said
    for first, second in itertools.pairwise([f"[run {n} of 6] seed=" for n in range(1, 6)]):
        assert said.index(first) < said.index(second)


def test_the_table_says_how_far_each_run_is_and_when_it_will_be_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the run's own pace since its first measurement: one that goes on has iterations before."""
    clock, screen = Hours(), Terminal()
    monkeypatch.setattr("robustmd.sweeping.picture.time", clock)
    monkeypatch.setenv("TERM", "xterm")
    overrides = [["method=opt", "method.lam=3", f"seed={seed}"] for seed in range(4)]
    picture = LivePicture(make_console(screen, width=100), overrides, 3)
    for number in range(3):
        picture.started(number)

    def measured(iteration: int, *worst: float | None) -> str:
        said = io.StringIO()
        progress = RunProgress(make_console(said), 300)
        progress.iterated(iteration, {"a": 1.0})
        progress.measured(iteration, *worst)
        return said.getvalue().rstrip()

    def shown(number: int) -> list[str]:
        table = picture._table()
        return [str([*column.cells][number]) for column in table.columns]

    assert shown(0) == ["1", "seed=0", "", "", "", "starts"]
    picture.said(0, measured(100, 2.3, 10.0))
    assert shown(0) == ["1", "seed=0", "100/300", "2.3000", "", "accuracy 10.00 %  p a 1.00"]
    clock.now = 20.0
    picture.said(0, measured(150, 0.5, None))
    assert shown(0)[2:] == ["150/300", "0.5000", "0:01:00", "p a 1.00"]
    clock.now = 25.0
    picture.said(0, "  frozen features of 8 examples")
    assert shown(0)[2:] == ["150/300", "0.5000", "0:00:55", "frozen features of 8 examples"]
    clock.now = 100.0
    assert shown(0)[4] == "0:00:00"
    picture.said(1, "  waits: another process")
    assert shown(1) == ["2", "seed=1", "", "", "", "waits: another process"]
