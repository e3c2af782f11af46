"""Jobs that end in every way: each is counted once, and what failed is named."""

import io
import itertools

import pytest
from hydra import compose, initialize_config_module
from hydra.core.utils import JobStatus, setup_globals
from jobs_of_workers import Runs

from robustmd.console import make_console
from robustmd.sweeping.picture import LivePicture
from robustmd.sweeping.plugins.launcher import _Sweep


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
