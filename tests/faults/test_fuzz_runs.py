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
from faults.tries import copied, differences
from hypothesis import strategies as st

from robustmd.errors import UserError
from robustmd.runs.listing import list_runs
from robustmd.runs.reader import collect

COUNTS = pytest.mark.parametrize("examples", [6, pytest.param(750, marks=pytest.mark.slow)])


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


Fault = tuple[Path, "bytes | None"]  # a file of the run, and what it is to hold: None: it goes


def damages(run: Path) -> st.SearchStrategy[Fault]:
    """A file of the run with damaged bytes, or gone."""

    def contents(file: Path) -> st.SearchStrategy[Fault]:
        whole = file.read_bytes()
        changed = st.one_of(damaged(whole), damaged(whole), st.none())
        return st.tuples(st.just(file.relative_to(run)), changed)

    files = sorted(path for path in run.rglob("*") if path.is_file())
    return st.sampled_from(files).flatmap(contents)


def reshapings(run: Path) -> st.SearchStrategy[Fault]:
    """A file of the run in the right syntax, with values of the wrong type or size in it."""

    def contents(file: Path) -> st.SearchStrategy[Fault]:
        kind = KINDS[file.suffix]
        written = reshaped(kind.read(file)).map(kind.write)
        return st.tuples(st.just(file.relative_to(run)), written)

    files = sorted(path for path in run.rglob("*") if path.suffix in KINDS)
    return st.sampled_from(files).flatmap(contents)


FAULTS = pytest.mark.parametrize("faults", [damages, reshapings])


def faulty_copy(run: Path, into: Path, fault: Fault) -> Path:
    """The run's directory in a new copy of its outputs tree, with the fault."""
    copy, (name, content) = copied(run, into), fault
    (copy / name).unlink() if content is None else (copy / name).write_bytes(content)
    return copy


def trained_or_refused(train: Train, outputs: Path) -> str:
    """The status of the run when its command is given again; "refused", in one line."""
    try:
        return train(outputs, "method=opt").status
    except UserError as error:
        words = str(error)
    assert len(words.splitlines()) == 1
    return "refused"


@FAULTS
@COUNTS
def test_a_finished_run(
    train: Train, finished: Path, tmp_path: Path, examples: int, faults: Callable[[Path], Any]
) -> None:
    (sound,) = collect(finished.parents[3]).runs
    outputs, again = tmp_path / "outputs", tmp_path / "again"
    numbers = itertools.count()

    def check(fault: Fault) -> None:
        run, number = faulty_copy(finished, tmp_path, fault), next(numbers)
        for option in ([], ["--failed"], ["--rerun-command"]):
            ends_well(["runs", str(outputs), *option], codes=(0, 1))
        for found in collect(outputs).runs if faults is damages else []:
            assert found.domains == sound.domains
            assert found.worst("loss", "train") >= 0
        ends_well(["evaluate", str(run), "runtime.threads=1"], codes=(0, 1))
        if number % 20 == 0:
            shutil.rmtree(again, ignore_errors=True)
            ends_well(["reproduce", str(run), "--out", str(again)], codes=(0, 1))
            ends_well(["report", str(outputs), "--out", str(tmp_path / "report")])
        status = trained_or_refused(train, outputs)
        assert status in ("kept", "refused") or (status == "finished" and faults is damages)
        if status == "finished":
            assert differences(run, finished) == []

    fuzz(examples, faults(finished), check)


@FAULTS
@COUNTS
def test_a_run_that_was_cut_off(
    train: Train,
    finished: Path,
    cut_off: Path,
    tmp_path: Path,
    examples: int,
    faults: Callable[[Path], Any],
) -> None:
    outputs = tmp_path / "outputs"

    def check(fault: Fault) -> None:
        run = faulty_copy(cut_off, tmp_path, fault)
        listed = [one.status for one in list_runs(outputs)]
        assert "finished" not in listed or faults is reshapings
        ends_well(["runs", str(outputs), "--rerun-command"], codes=(0, 1))
        collect(outputs)
        status = trained_or_refused(train, outputs)
        assert status in ("finished", "refused") or (status == "diverged" and faults is reshapings)
        if status == "finished" and faults is damages:
            assert differences(run, finished) == []
        elif status == "finished":
            assert json.loads((run / "summary.json").read_text())["iterations_done"] == 30

    fuzz(examples, faults(cut_off), check)
