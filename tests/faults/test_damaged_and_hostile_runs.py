"""Run directories that somebody damaged, or made to reach out: nothing outside changes, no code
runs, nobody waits, a finished run is kept, and every other run is still there."""

import hashlib
import os
import shutil
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from faults.conftest import Train, refused
from faults.outcomes import ends_well, outcome_of
from faults.tries import copied, differences, notes_of, with_keys

from robustmd.runs.reader import collect

Damage = Callable[[Path], object]
CANARY = "canary"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder beside the outputs, with files that a link may lead to."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "file").write_text("precious")
    (folder / "iteration-00000001.pt").write_text("precious too")
    return folder


def state_of(folder: Path) -> dict[str, str]:
    """{path: sha256 and time} of all in it."""
    return {
        str(path.relative_to(folder)): f"{path.lstat().st_mtime_ns} "
        + (hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in [folder, *folder.rglob("*")]
    }


def replaced(path: Path, make: Damage) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    make(path)


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def a_folder_in_its_place(path: Path) -> None:
    replaced(path, Path.mkdir)


# --- nothing leads out of the directory -----------------------------------------------------------

NAMES = ("lock", "train.log", "metrics.csv", "weights.csv", "config.yaml", "summary.json")
NAMES += ("environment.json", "predictions.npz", "examples.png", "checkpoints", "", "../..")


@pytest.mark.parametrize("name", NAMES)
def test_a_link_is_not_followed(
    train: Train, cut_off: Path, victim: Path, tmp_path: Path, name: str
) -> None:
    run, before = copied(cut_off, tmp_path), state_of(victim)
    target = victim if name in ("checkpoints", "", "../..") else victim / "file"
    outputs = run.parents[3]
    replaced((run / name).resolve(), lambda path: path.symlink_to(target))
    assert "symbolic link" in refused(train, run.parents[3])
    ends_well(["runs", str(outputs), "--clean", "--yes"], codes=(0, 1))
    assert state_of(victim) == before


@pytest.mark.parametrize("name", ["lock", "train.log"])
def test_a_file_that_lies_elsewhere_as_well_is_not_written(
    train: Train, cut_off: Path, victim: Path, tmp_path: Path, name: str
) -> None:
    run = copied(cut_off, tmp_path)
    (victim / "file").write_bytes((run / name).read_bytes() or b"precious")
    before = (victim / "file").read_bytes()
    replaced(run / name, lambda path: path.hardlink_to(victim / "file"))
    assert "a hard link" in refused(train, run.parents[3])
    assert (victim / "file").read_bytes() == before


@pytest.mark.parametrize("name", ["metrics.csv", "lock", "checkpoints", "summary.json"])
def test_a_pipe_keeps_nobody_waiting(
    train: Train, finished: Path, tmp_path: Path, name: str
) -> None:
    run = copied(finished, tmp_path)
    replaced(run / name, os.mkfifo)
    other = copied(finished, tmp_path / "other")
    shutil.move(other.parents[3], run.parents[3] / "more")
    code, out, _ = outcome_of(["runs", str(run.parents[3])])
    assert code == 0
    assert "2 runs: " in out
    assert "is not a file" in out or name in ("checkpoints", "metrics.csv")
    refused(train, run.parents[3])


def a_terabyte_of_nothing(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


def without_rows_it_had_seen(path: Path) -> None:
    """A power cut took them, but not those of the checkpoint before."""
    older = torch.load(min(path.parent.glob("iteration-*.pt")), weights_only=True)
    os.truncate(path.parents[1] / "metrics.csv", older["lengths"]["metrics.csv"])


CHECKPOINTS = {
    "pipe": lambda path: replaced(path, os.mkfifo),
    "folder": a_folder_in_its_place,
    "device": lambda path: replaced(path, lambda p: p.symlink_to("/dev/zero")),
    "terabyte": a_terabyte_of_nothing,
    "empty": lambda path: path.write_bytes(b""),
    "bit": flip_a_bit,
    "short": lambda path: os.truncate(path, path.stat().st_size - 1),
    "rows": without_rows_it_had_seen,
}


@pytest.mark.parametrize("damage", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_a_checkpoint_that_is_none_of_this_run_is_passed_over(
    train: Train, finished: Path, cut_off: Path, tmp_path: Path, damage: Damage
) -> None:
    run = copied(cut_off, tmp_path)
    newest = max((run / "checkpoints").glob("iteration-*.pt"))
    damage(newest)
    train(run.parents[3], "method=opt")
    notes = notes_of(run)
    assert "passed over" in notes[0]
    assert newest.name in notes[0] or "iteration 27" in notes[0]
    assert notes[1] == "resumed after iteration 24"
    assert differences(run, finished) == []


def test_a_checkpoint_cuts_no_other_file(
    train: Train, finished: Path, cut_off: Path, victim: Path, tmp_path: Path
) -> None:
    run, before = copied(cut_off, tmp_path), state_of(victim)
    newest = max((run / "checkpoints").glob("iteration-*.pt"))
    state = torch.load(newest, weights_only=True)
    state["lengths"][str(victim / "file")] = 0
    torch.save(state, newest)
    train(run.parents[3], "method=opt")
    assert state_of(victim) == before
    assert differences(run, finished) == []


# --- a finished run is kept -----------------------------------------------------------------------


RECORDS = ("environment.json", "summary.json", "config.yaml")
RESULTS = ("weights.csv", "checkpoints/final.pt")
DAMAGES = [
    ("metrics.csv", cut_in_half),
    ("summary.json", a_folder_in_its_place),
    ("summary.json", lambda path: with_keys(path, status="finishef")),
    *[(name, Path.unlink) for name in (*RECORDS, *RESULTS)],
    *[(name, cut_in_half) for name in RECORDS],
]


@pytest.mark.parametrize(("name", "damage"), DAMAGES)
def test_a_finished_run_is_not_trained_over(
    train: Train, finished: Path, tmp_path: Path, name: str, damage: Damage
) -> None:
    run = copied(finished, tmp_path)
    damage(run / name)
    before = state_of(run)
    words = refused(train, run.parents[3])
    assert name in words
    assert "force=true trains" in words
    assert state_of(run).keys() - {"lock"} == before.keys() - {"lock"}
    assert (
        name == "metrics.csv"
        or (run / "metrics.csv").read_bytes() == (finished / "metrics.csv").read_bytes()
    )


def test_a_finished_run_without_summary_and_model_is_not_begun_anew(
    train: Train, finished: Path, tmp_path: Path
) -> None:
    """Once it was trained over, and files of somebody else's in it were removed."""
    run = copied(finished, tmp_path)
    (run / "summary.json").unlink()
    (run / "checkpoints" / "final.pt").unlink()
    (run / "mine.txt").write_text("kept")
    assert "summary.json is missing; force=true" in refused(train, run.parents[3])
    assert train(run.parents[3], "method=opt", "force=true").status == "finished"
    assert (run / "mine.txt").read_text() == "kept"


def test_force_trains_a_damaged_run_anew(train: Train, finished: Path, tmp_path: Path) -> None:
    run = copied(finished, tmp_path)
    cut_in_half(run / "summary.json")
    (run / "checkpoints" / "final.pt").unlink()
    assert train(run.parents[3], "method=opt", "force=true").status == "finished"
    assert differences(run, finished) == []


def promise_too_much(path: Path) -> None:
    """Arrays whose headers name more numbers than there are."""
    with zipfile.ZipFile(path, "w") as archive:
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1180591620717411303424,), }\n"
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


@pytest.mark.parametrize("left", [(), ("summary.json",), ("summary.json", "config.yaml")])
def test_a_run_killed_inside_its_first_writes_begins(
    train: Train, finished: Path, cut_off: Path, tmp_path: Path, left: tuple[str, ...]
) -> None:
    run = copied(cut_off, tmp_path)
    for path in run.iterdir():
        if path.name not in left:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert train(run.parents[3], "method=opt").status == "finished"
    assert differences(run, finished) == []


# --- one bad directory never stops the others -----------------------------------------------------


def test_directories_may_be_removed_while_they_are_listed(outputs) -> None:
    whole = outputs.root.parent / "whole"
    for seed in range(5):
        outputs.run("even", seed)
    shutil.copytree(outputs.root, whole)
    done = threading.Event()

    def remove_and_bring_back() -> None:
        while not done.is_set():
            for run in outputs.root.glob("*/*/*/seed=*"):
                shutil.rmtree(run)
            shutil.copytree(whole, outputs.root, dirs_exist_ok=True)

    thread = threading.Thread(target=remove_and_bring_back)
    thread.start()
    try:
        for _ in range(40):
            ends_well(["runs", str(outputs.root)])
            collect(outputs.root)
    finally:
        done.set()
        thread.join()


# --- all at once ----------------------------------------------------------------------------------


class Evil:
    """What a pickle could run."""

    def __reduce__(self):
        return (os.mkdir, (CANARY,))


def reach_out(run: Path, victim: Path) -> None:
    """A finished run that tries whatever the rows above do, and to run code."""
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["paths"] = {key: str(victim / key) for key in ("data", "cache", "outputs")}
    config["data"]["root"] = str(victim)
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    overrides = [f"+hydra.callbacks.x={{_target_: os.mkdir, name: {CANARY}}}"]
    overrides += [f"hydra.run.dir={victim}", "method=opt"]
    with_keys(run / "environment.json", overrides=overrides, folder=str(victim))
    torch.save({"w": Evil()}, run / "checkpoints" / "final.pt")
    torch.save({"w": Evil()}, run / "checkpoints" / "iteration-00000099.pt")
    for name in ("train.log", "examples.png", "weights.csv"):
        replaced(run / name, lambda path: path.symlink_to(victim / "file"))
    replaced(run / "lock", os.mkfifo)
    promise_too_much(run / "predictions.npz")


def test_a_hostile_run_reaches_nothing_and_hides_nobody(
    train: Train,
    finished: Path,
    victim: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run = copied(finished, tmp_path)
    outputs = run.parents[3]
    assert train(outputs, "method=even").status == "finished"
    reach_out(run, victim)
    before = state_of(victim)
    refused(train, run.parents[3])
    refused(train, run.parents[3], "resume=false")
    assert ends_well(["evaluate", str(run)]) == 2
    ends_well(["reproduce", str(run), "--out", str(tmp_path / "again")], codes=(0, 1))
    for arguments in ([], ["--failed", "--rerun-command"], ["--clean", "--yes"]):
        ends_well(["runs", str(outputs), *arguments], codes=(0, 1))
    code, out, _ = outcome_of(["runs", str(outputs)])
    assert code == 0
    assert "2 runs: " in out
    assert ends_well(["report", str(outputs), "--out", str(tmp_path / "report")]) == 0
    assert "even" in (tmp_path / "report" / "README.md").read_text()
    assert state_of(victim) == before
    assert not list(tmp_path.rglob(CANARY))
