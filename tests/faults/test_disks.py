"""A disk that fills up, is read-only or goes away: one line, and nothing that was there is lost."""

import errno
import io
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults.conftest import Train, refused
from faults.faulty_os import FaultyOS
from faults.tries import differences

from robustmd.runs import files
from robustmd.runs.listing import list_runs
from robustmd.training.run import Run


def checkpoint_size(cut_off: Path) -> int:
    return max(path.stat().st_size for path in (cut_off / "checkpoints").iterdir())


@pytest.fixture
def small_disk(tmp_path: Path, cut_off: Path) -> Iterator[Path]:
    """A file system of four checkpoints' size."""
    disk = tmp_path / "disk"
    disk.mkdir()
    size = 4 * checkpoint_size(cut_off)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(disk)]
    if (
        shutil.which("mount") is None
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_file_system_that_fills_up(
    train: Train, finished: Path, cut_off: Path, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(int(1.5 * checkpoint_size(cut_off))))
    words = refused(train, small_disk / "outputs")
    assert "No space left on device; free or open that place, or choose another" in words
    (listed,) = list_runs(small_disk / "outputs")
    assert listed.status in ("failed", "cut off")  # failed, where there was room to say so
    ballast.unlink()
    outcome = train(small_disk / "outputs", "method=opt")
    assert outcome.status == "finished"
    notes = json.loads((outcome.directory / "summary.json").read_text())["notes"]
    assert any(note.startswith("resumed after iteration") for note in notes)
    assert differences(outcome.directory, finished) == []


def test_a_read_only_file_system(
    train: Train, finished: Path, cut_off: Path, small_disk: Path
) -> None:
    shutil.copytree(cut_off.parents[3], small_disk / "outputs")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert "Read-only file system; free or open that place" in refused(
        train, small_disk / "outputs"
    )
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert differences(train(small_disk / "outputs", "method=opt").directory, finished) == []


class ReadOnly(FaultyOS):
    def fdopen(self, descriptor: int, mode: str) -> io.BufferedWriter:
        os.close(descriptor)
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (lambda _, patch: patch.setattr(files, "os", ReadOnly()), "csv: Read-only file system"),
        (lambda outputs, _: shutil.rmtree(outputs), "No such file or directory"),
    ],
    ids=["read-only", "removed"],
)
def test_a_folder_that_cannot_be_written_any_more(
    train: Train,
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[Path, pytest.MonkeyPatch], None],
    words: str,
) -> None:
    outputs, measure = tmp_path / "outputs", Run.measure

    def under_way(self: Run) -> None:
        if self.iteration == 12:
            happens(outputs, patch)
        measure(self)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "measure", under_way)
        assert words in refused(train, outputs)
    assert outputs.exists() == ("Read" in words)  # nothing half is left in the place of one removed
    assert differences(train(outputs, "method=opt").directory, finished) == []


def test_a_clock_that_is_set_back(
    train: Train, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(2_000_000_000, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    outcome = train(tmp_path, "method=opt")
    rows = (outcome.directory / "metrics.csv").read_text().splitlines()[1:]
    seconds = [float(row.split(",")[1]) for row in rows]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0
    spent = json.loads((outcome.directory / "summary.json").read_text())["seconds"]
    assert all(value >= 0 for value in spent.values())
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert list_runs(tmp_path)[0].age == 0
    assert differences(outcome.directory, finished) == []
