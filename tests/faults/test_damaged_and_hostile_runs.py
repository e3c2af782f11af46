"""Run directories that somebody damaged or made to reach out: no code runs, nothing outside
changes, nobody waits, a finished run is kept, and the other runs are still there."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from faults.conftest import Train, refused
from faults.outcomes import ends_well, outcome_of
from faults.tries import copied, differences, notes_of, with_keys

from robustmd.runs.listing import list_runs


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder beside the outputs, which a link may lead to."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "file").write_text("precious")
    return tmp_path / "victim"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


LEADING_OUT = [
    *[(name, lambda path, victim: path.symlink_to(victim)) for name in ("checkpoints", "", "..")],
    *[
        (name, lambda path, victim: path.symlink_to(victim / "file"))
        for name in ("lock", "train.log", "metrics.csv", "config.yaml", "summary.json")
    ],
    *[(name, lambda path, _: os.mkfifo(path)) for name in ("lock", "metrics.csv", "summary.json")],
    ("train.log", lambda path, victim: path.hardlink_to(victim / "file")),
]


@pytest.mark.parametrize(("name", "replace"), LEADING_OUT)
def test_a_run_that_leads_out_of_its_folder_is_refused(
    train: Train,
    cut_off: Path,
    victim: Path,
    tmp_path: Path,
    name: str,
    replace: Callable[[Path, Path], None],
) -> None:
    run, before = copied(cut_off, tmp_path), contents(victim)
    path = (run / name).resolve()
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    replace(path, victim)
    refused(train, run.parents[3])
    ends_well(["runs", str(run.parents[3]), "--clean", "--yes"], codes=(0, 1))
    assert contents(victim) == before


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("metrics.csv", cut_in_half),
        ("summary.json", cut_in_half),
        ("summary.json", Path.unlink),
        ("config.yaml", Path.unlink),
        ("environment.json", cut_in_half),
        ("checkpoints/final.pt", Path.unlink),
    ],
)
def test_a_damaged_finished_run_is_trained_over_by_force_alone(
    train: Train, finished: Path, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    run = copied(finished, tmp_path)
    damage(run / name)
    before = contents(run)
    reason = refused(train, run.parents[3])
    assert name in reason
    assert "force=true trains" in reason
    assert before.items() <= contents(run).items()
    assert train(run.parents[3], "method=opt", "force=true").status == "finished"
    assert differences(run, finished) == []


@pytest.mark.parametrize(
    "damage", [cut_in_half, lambda path: (path.unlink(), os.mkfifo(path))], ids=["cut", "pipe"]
)
def test_of_a_damaged_checkpoint_the_one_before_is_taken(
    train: Train, finished: Path, cut_off: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    run = copied(cut_off, tmp_path)
    newest = max((run / "checkpoints").glob("iteration-*.pt"))
    damage(newest)
    train(run.parents[3], "method=opt")
    passed_over, resumed = notes_of(run)
    assert newest.name in passed_over
    assert resumed == "resumed after iteration 24"
    assert differences(run, finished) == []


def test_a_checkpoint_cuts_no_other_file(
    train: Train, finished: Path, cut_off: Path, victim: Path, tmp_path: Path
) -> None:
    run, before = copied(cut_off, tmp_path), contents(victim)
    newest = max((run / "checkpoints").glob("iteration-*.pt"))
    state = torch.load(newest, weights_only=True)
    state["lengths"][str(victim / "file")] = 0
    torch.save(state, newest)
    train(run.parents[3], "method=opt")
    assert contents(victim) == before
    assert differences(run, finished) == []


class Evil:
    """What a pickle could run."""

    def __reduce__(self):
        return (os.mkdir, ("canary",))


def test_a_hostile_run_reaches_nothing_and_hides_nobody(
    train: Train, finished: Path, victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = copied(finished, tmp_path)
    outputs = run.parents[3]
    assert train(outputs, "method=even").status == "finished"
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["paths"] = {key: str(victim / key) for key in ("data", "cache", "outputs")}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    callback = "+hydra.callbacks.x={_target_: os.mkdir, name: canary}"
    with_keys(run / "environment.json", overrides=[callback], folder=str(victim))
    torch.save({"w": Evil()}, run / "checkpoints" / "final.pt")
    before = contents(victim)
    code, _, reason = outcome_of(["evaluate", str(run)])
    assert (code, "final.pt" in reason) == (2, True)

    with_keys(run / "summary.json", status="\x1b]0;x\x07<script>steal()</script>")
    (run / "weights.csv").unlink()
    (run / "weights.csv").symlink_to(victim / "file")
    refused(train, outputs)
    assert ends_well(["reproduce", str(run), "--out", str(tmp_path / "again")]) == 2
    ends_well(["runs", str(outputs), "--failed", "--rerun-command"], codes=(1,))
    _, text, _ = outcome_of(["runs", str(outputs)])
    assert ends_well(["report", str(outputs), "--out", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "index.html").read_text()
    for shown in (text, page):
        assert "even" in shown
        assert r"\x1b]0;x\x07" in shown
        assert "\x1b" not in shown
    assert "<script>steal" not in page
    assert len(list_runs(outputs)) == 2
    assert contents(victim) == before
    assert not list(tmp_path.rglob("canary"))
