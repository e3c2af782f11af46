"""Jobs that end in every way: each is counted once, and what failed is named."""

import io
import itertools
import re
import time
from pathlib import Path

import pytest
from jobs_of_workers import run_job
from rich.text import Text

from robustmd.cli import main
from robustmd.console import make_console
from robustmd.runs.sweep_note import SweepNote
from robustmd.sweep.jobs import Job
from robustmd.sweep.launch import SideBySide
from robustmd.sweep.picture import LivePicture
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
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("robustmd.sweep.launch.run_job", run_job)
    screen = Terminal()
    jobs = [Job(i, 6, ["method=opt", f"seed={seed}"]) for i, seed in enumerate([0, 1, 2, 0, 3, 0])]
    with LivePicture(make_console(screen, width=60), jobs, 1) as picture:
        ended = SideBySide(jobs, [{}], picture, SweepNote(tmp_path, ["seed=0,1"], 6)).run()
    assert [end and end.exit_code for end in ended] == [0, 1, 2, 0, 0, None]
    assert ended[4].stops == 143
    assert len({ended[0].message, ended[2].message, ended[3].message}) == 3
    assert ended[1].message.startswith("its process ended with SIGKILL (often too little memory")
    assert main(["runs", str(tmp_path)]) == 0
    left = "1 of 6 runs of a sweep have not begun: robustmd train -m seed=0,1"
    assert left in capsys.readouterr().out
    said = screen.getvalue()
    assert said.count("2|   failed: its process ended with SIGKILL") == 1
    assert re.search(r"all runs +1/6", Text.from_ansi(said).plain)
    for first, second in itertools.pairwise([f"[run {n} of 6] seed=" for n in range(1, 6)]):
        assert said.index(first) < said.index(second)


def test_a_terminal_shows_how_far_each_run_is_and_when_it_will_be_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the run's own pace since its first measurement: one that goes on has iterations before."""
    clock, screen = Hours(), Terminal()
    monkeypatch.setenv("TERM", "xterm")
    jobs = [Job(seed, 4, ["method=opt", "method.lam=3", f"seed={seed}"]) for seed in range(4)]
    console = make_console(screen, width=120)
    monkeypatch.setattr(console, "get_time", clock.monotonic)

    def measured(iteration: int, *worst: float | None) -> str:
        said = io.StringIO()
        progress = RunProgress(make_console(said), 300)
        progress.iterated(iteration, {"a": 1.0})
        progress.measured(iteration, *worst)
        return said.getvalue().rstrip()

    def shown() -> list[str]:
        with console.capture() as capture:
            console.print(picture._progress)
        return [" ".join(line.split()) for line in Text.from_ansi(capture.get()).plain.splitlines()]

    picture = LivePicture(console, jobs, 3)
    for job in jobs[:3]:
        picture.started(job)
    assert shown()[:2] == ["all runs 0/4 -:--:--", "1 seed=0 0/? starts"]
    picture.said(jobs[0], measured(100, 2.3, 10.0))
    worst = "worst training loss 2.3000, accuracy 10.00 % p a 1.00"
    assert shown()[1] == f"1 seed=0 100/300 -:--:-- {worst}"
    clock.now = 20.0
    picture.said(jobs[0], measured(150, 0.5, None))
    assert shown()[1].startswith("1 seed=0 150/300 0:01:00 worst training loss 0.5000")
    picture.said(jobs[1], "  waits: another process")
    assert shown()[2] == "2 seed=1 0/? waits: another process"
    picture.ended(jobs[0])
    assert shown()[0].startswith("all runs 1/4")
