"""Any bytes in a run directory: nothing but a sound run is taken for whole, and no command fails
otherwise than with one line."""

import io
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import yaml
from faults.conftest import Train
from faults.fuzzing import damaged, ends_well, fuzz, reshaped
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


RESHAPED = pytest.mark.parametrize("examples", [12, pytest.param(1000, marks=pytest.mark.slow)])


def reshapings(run: Path) -> st.SearchStrategy[tuple[Path, bytes]]:
    """A file of the run in the right syntax, with values of the wrong type or size in it."""
    names = [*run.glob("*.json"), run / "config.yaml", run / "predictions.npz"]
    names += [*(run / "checkpoints").glob("*.pt")]

    def contents(name: Path) -> st.SearchStrategy[tuple[Path, bytes]]:
        relative, kind = name.relative_to(tree_of(run)), KINDS[name.suffix]
        written = reshaped(kind.read(name)).map(kind.write)
        return st.tuples(st.just(relative), written)

    return st.sampled_from([name for name in names if name.exists()]).flatmap(contents)


class Kind(NamedTuple):
    """How a kind of file is read as nested data, and such data written."""

    read: Callable[[Path], Any]
    write: Callable[[Any], bytes]


def saved(state: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(state, stream)
    return stream.getvalue()


def savez(arrays: Any) -> bytes:
    stream = io.BytesIO()
    sound = {str(k) or "x": v if isinstance(v, np.ndarray) else str(v) for k, v in arrays.items()}
    np.savez(stream, **sound)
    return stream.getvalue()


KINDS = {
    ".json": Kind(lambda p: json.loads(p.read_text()), lambda v: json.dumps(v).encode()),
    ".yaml": Kind(
        lambda p: yaml.safe_load(p.read_text()), lambda v: yaml.safe_dump(v).encode("utf-8")
    ),
    ".pt": Kind(lambda p: torch.load(p, weights_only=True), saved),
    ".npz": Kind(lambda p: dict(np.load(p)), savez),
}


@RESHAPED
def test_a_finished_run_of_the_wrong_shape(
    train: Train, finished: Path, tmp_path: Path, examples: int
) -> None:
    outputs = tmp_path / "outputs"
    numbers = itertools.count(1)

    def check(damage: tuple[Path, bytes]) -> None:
        run = damaged_copy(finished, outputs, damage)
        for option in ([], ["--failed"], ["--rerun-command"]):
            ends_well(["runs", str(outputs), *option], codes=(0, 1))
        collect(outputs)
        ends_well(["evaluate", str(run), "runtime.threads=1"], codes=(0, 1))
        if next(numbers) % 10 == 0:
            again = tmp_path / "again"
            shutil.rmtree(again, ignore_errors=True)
            ends_well(["reproduce", str(run), "--out", str(again)], codes=(0, 1))
        if next(numbers) % 40 == 1:
            ends_well(["report", str(outputs), "--out", str(tmp_path / "report")])
        assert trained_or_refused(train, outputs) in ("kept", "refused")

    fuzz(examples, reshapings(finished), check)


@RESHAPED
def test_a_run_that_was_cut_off_of_the_wrong_shape(
    train: Train, finished: Path, cut_off: Path, tmp_path: Path, examples: int
) -> None:
    def check(damage: tuple[Path, bytes]) -> None:
        run = damaged_copy(cut_off, tmp_path / "outputs", damage)
        ends_well(["runs", str(tmp_path / "outputs"), "--rerun-command"], codes=(0, 1))
        collect(tmp_path / "outputs")
        status = trained_or_refused(train, tmp_path / "outputs")
        assert status in ("finished", "diverged", "refused")
        if status == "finished":
            assert json.loads((run / "summary.json").read_text())["iterations_done"] == 30

    fuzz(examples, reshapings(cut_off), check)


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
        status = trained_or_refused(train, tmp_path / "outputs")
        assert status in ("finished", "refused")
        if status == "finished":
            assert differences(run, finished) == []

    fuzz(examples, damages(cut_off), check)
