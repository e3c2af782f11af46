"""Signals, checkpoints by the clock, damaged checkpoints, and text that looks like a reference."""

import os
import signal
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import yaml
from faults.conftest import Train
from faults.outcomes import outcome_of
from faults.tries import SETTINGS, copied, differences, notes_of, with_keys
from tiny import signalled_at

from robustmd.config.check import recorded_config
from robustmd.runs import checkpoints
from robustmd.runs.listing import list_runs
from robustmd.training import plan, progress
from robustmd.training import run as run_module

CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "SIGUSR1": 143, "SIGUSR2": 143}
CODES["SIGXCPU"] = 152


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_a_signal_ends_the_iteration_and_the_run_goes_on(
    train: Train, finished: Path, tmp_path: Path, name: str, code: int
) -> None:
    with signalled_at(13, name):
        outcome = train(tmp_path, "method=opt")
    assert (outcome.status, outcome.exit_code) == ("interrupted", code)
    assert f"stopped by {name} after iteration 14" in outcome.message
    again = train(tmp_path, "method=opt")
    assert notes_of(again.directory) == ["resumed after iteration 14"]
    assert differences(again.directory, finished) == []


def test_a_signal_while_it_finishes_ends_the_sweep_and_not_the_run(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = after_signals(run_module.Run.finish, signal.SIGTERM)
    monkeypatch.setattr(run_module.Run, "finish", finish)
    outcome = train(tmp_path)
    assert (outcome.status, outcome.exit_code, outcome.stop_code) == ("finished", 0, 143)


@pytest.mark.parametrize(
    ("phase", "iteration"),
    [("Learner", 0), ("batch_notes", 0), ("measure", 0), ("checkpoints.save", 3)],
)
def test_a_signal_in_any_phase_of_a_run_leaves_a_checkpoint(
    train: Train,
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    phase: str,
    iteration: int,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(f"robustmd.training.run.{phase}", signalling(phase))
        outcome = train(tmp_path, "method=opt")
    assert (outcome.status, outcome.exit_code) == ("interrupted", 143)
    assert f"iteration {iteration};" in outcome.message
    again = train(tmp_path, "method=opt")
    assert notes_of(again.directory) == [f"resumed after iteration {iteration}"]
    assert differences(again.directory, finished) == []


def signalling(name: str) -> Any:
    """A function of the run's that is sent SIGTERM, and SIGUSR1 after it."""
    return after_signals(attrgetter(name)(run_module), signal.SIGTERM, signal.SIGUSR1)


def after_signals(function: Any, *numbers: int) -> Any:
    def signalled(*parts: Any, **named: Any) -> Any:
        for number in numbers:
            os.kill(os.getpid(), number)
        return function(*parts, **named)

    return signalled


def test_a_signal_while_data_is_made_ready_ends_it_at_once(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waiting(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        raise AssertionError("went on")

    monkeypatch.setattr(plan, "load_domains", waiting)
    outcome = train(tmp_path / "outputs")
    assert (outcome.status, outcome.exit_code) == ("interrupted", 129)
    assert outcome.message == "stopped by SIGHUP before training; the same command goes on"
    assert not (tmp_path / "outputs").exists()


def test_an_ignored_sighup_stays_ignored_and_every_handler_comes_back(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        hung_up = after_signals(run_module.measure, signal.SIGHUP)
        monkeypatch.setattr(run_module, "measure", hung_up)
        assert train(tmp_path).status == "finished"
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGXCPU) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_ctrl_c_does_not_wait_and_one_passed_on_twice_is_one(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((0.0, 0.5, 3.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock, 3.0))
    request = progress.StopRequest()
    with request:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(progress.Interrupted, match="stopped by SIGINT"):
            request.check()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_every_resumption_stays_noted(
    train: Train, finished: Path, cut_off: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one elsewhere, though the run came back: it is not bit-exact any more."""
    run = copied(cut_off, tmp_path)
    here = (run / "environment.json").read_text()
    with_keys(run / "environment.json", device="cuda")
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "batch_notes", signalling("batch_notes"))
        assert train(tmp_path / "outputs", "method=opt").status == "interrupted"
    (run / "environment.json").write_text(here)
    train(tmp_path / "outputs", "method=opt")
    first, second = notes_of(run)
    assert first == "resumed after iteration 27 on cpu where device differ: not bit-exact"
    assert second == "resumed after iteration 27"


def test_checkpoints_come_by_the_clock_too(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[int] = []
    save = checkpoints.save

    def noting(run: Path, iteration: int, state: dict[str, Any]) -> None:
        saved.append(iteration)
        save(run, iteration, state)

    monkeypatch.setattr(checkpoints, "save", noting)
    ticks = iter(range(10**6))
    monkeypatch.setattr(run_module.time, "monotonic", lambda: float(next(ticks)))
    train(tmp_path, "checkpoint.every=1000", "checkpoint.seconds=5")
    assert len(saved) > 3
    saved.clear()
    train(tmp_path, "force=true", "checkpoint.every=1000", "checkpoint.seconds=null")
    assert saved == []


def test_without_a_usable_checkpoint_it_begins_anew_and_says_so(
    train: Train, finished: Path, cut_off: Path, tmp_path: Path
) -> None:
    run = copied(cut_off, tmp_path)
    (run / "metrics.csv").write_text("")
    outcome = train(tmp_path / "outputs", "method=opt")
    assert notes_of(outcome.directory)[-1] == "begun anew: no checkpoint could be used"
    assert differences(outcome.directory, finished) == []


def test_a_config_that_has_gone_is_written_again(
    train: Train, finished: Path, cut_off: Path, tmp_path: Path
) -> None:
    run = copied(cut_off, tmp_path)
    (run / "config.yaml").write_text("data: [")
    (run / "environment.json").unlink()
    train(tmp_path / "outputs", "method=opt")
    found, expected = (yaml.safe_load((d / "config.yaml").read_text()) for d in (run, finished))
    assert {**found, "paths": None} == {**expected, "paths": None}
    assert (run / "environment.json").exists()


@pytest.mark.parametrize(
    "text", ["${oc.env:HOME}", "a${oc.create:{x:1}}", "\\${nope}", "${", "$\\${a}"]
)
def test_a_reference_in_a_runs_config_stays_text(finished: Path, text: str) -> None:
    config = yaml.safe_load((finished / "config.yaml").read_text())
    config["data"] = {"name": "folder", "root": f"/data/{text}", "validation": 0.0}
    assert recorded_config(config).data.root == f"/data/{text}"
    assert recorded_config(config, ["data.size=48"]).data.root == f"/data/{text}"


def test_a_sweep_goes_on_and_names_the_directory_of_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = outcome_of(["train", "-m", *SETTINGS, "training.learning_rate=1e6,0.01"])
    assert code == 1
    assert "[run 2 of 2]" in out
    assert "1 run did not finish:" in err
    found = {one.status: one.path for one in list_runs(tmp_path / "outputs")}
    assert found.keys() == {"diverged", "finished"}
    assert f"({found['diverged'].relative_to(tmp_path)})" in err.splitlines()[-1]
