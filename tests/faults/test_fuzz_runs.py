"""Any bytes in a run directory: nothing but a sound run is taken for whole, and no command fails
otherwise than with one line."""

import shutil
from pathlib import Path

import pytest
from faults.conftest import Train
from faults.fuzzing import damaged, ends_well, fuzz
from faults.tries import differences
from hypothesis import strategies as st

from robustmd.errors import UserError
from robustmd.runs.listing import list_runs
from robustmd.runs.reader import collect

COUNTS = pytest.mark.parametrize("examples", [12, pytest.param(750, marks=pytest.mark.slow)])


def tree_of(run: Path) -> Path:
    return run.parents[3]


def files_of(run: Path) -> list[Path]:
    return sorted(p.relative_to(tree_of(run)) for p in run.rglob("*") if p.is_file())


def damages(run: Path) -> st.SearchStrategy[tuple[Path, bytes | None]]:
    """One of the run's files, and what it is to hold: None takes it away."""

    def contents(name: Path) -> st.SearchStrategy[tuple[Path, bytes | None]]:
        whole = (tree_of(run) / name).read_bytes()
        return st.tuples(st.just(name), st.one_of(damaged(whole), damaged(whole), st.none()))

    return st.sampled_from(files_of(run)).flatmap(contents)


def damaged_copy(run: Path, into: Path, damage: tuple[Path, bytes | None]) -> Path:
    """The outputs tree of `run`, copied anew, with the damage; returns the run's directory."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(tree_of(run), into)
    name, content = damage
    (into / name).unlink() if content is None else (into / name).write_bytes(content)
    return into / run.relative_to(tree_of(run))


def trained_or_refused(train: Train, outputs: Path) -> str:
    """The status of the run when its command is given again; "refused", in one line."""
    try:
        return train(outputs, "method=opt").status
    except UserError as error:
        words = str(error)
    assert len(words.splitlines()) == 1
    return "refused"


@COUNTS
def test_a_finished_run(train: Train, finished: Path, tmp_path: Path, examples: int) -> None:
    (sound,) = collect(tree_of(finished)).runs

    def check(damage: tuple[Path, bytes | None]) -> None:
        run = damaged_copy(finished, tmp_path / "outputs", damage)
        ends_well(["runs", str(tmp_path / "outputs")])
        ends_well(["runs", str(tmp_path / "outputs"), "--rerun-command"], codes=(0, 1))
        for found in collect(tmp_path / "outputs").runs:
            assert found.domains == sound.domains
            assert found.worst_loss("train") >= 0
        ends_well(["evaluate", str(run), "runtime.threads=1"], codes=(0, 1))
        status = trained_or_refused(train, tmp_path / "outputs")
        assert status in ("kept", "finished", "refused")
        if status == "finished":
            assert differences(run, finished) == []

    fuzz(examples, damages(finished), check)


@COUNTS
def test_a_run_that_was_cut_off(
    train: Train, finished: Path, cut_off: Path, tmp_path: Path, examples: int
) -> None:
    def check(damage: tuple[Path, bytes | None]) -> None:
        run = damaged_copy(cut_off, tmp_path / "outputs", damage)
        assert all(one.status != "finished" for one in list_runs(tmp_path / "outputs"))
        ends_well(["runs", str(tmp_path / "outputs"), "--rerun-command"], codes=(0, 1))
        if trained_or_refused(train, tmp_path / "outputs") != "refused":
            assert differences(run, finished) == []

    fuzz(examples, damages(cut_off), check)
