"""One writer a run, whatever became of the one before."""

import json
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from robustmd.errors import UserError
from robustmd.runs import lock
from robustmd.runs.lock import Holder

ELSEWHERE = "another-machine"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def write(path: Path, pid: int, host: str = "", started: int | None = None) -> None:
    path.write_text(
        json.dumps({"pid": pid, "host": host or socket.gethostname(), "started": started})
    )


@pytest.fixture
def ended() -> int:
    """The number of a process that has ended."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def without_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has no locks."""
    monkeypatch.setattr(lock, "_flock", lambda descriptor, shared=False: None)


def test_it_names_its_holder_while_it_is_held(path: Path) -> None:
    with suppress(ZeroDivisionError), lock.held(path):
        assert lock.holder(path) == f"process {os.getpid()} on {socket.gethostname()}"
        _ = 1 / 0
    assert lock.holder(path) is None
    assert path.read_text() == ""
    assert lock.holder(path.parent / "nothing") is None


@pytest.mark.parametrize("flock", [True, False])
def test_a_lock_left_behind_is_taken_over_with_a_line(
    path: Path, ended: int, flock: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not flock:
        without_flock(monkeypatch)
    write(path, ended)
    assert lock.holder(path) is None
    said: list[str] = []
    with lock.held(path, said.append):
        pass
    here = socket.gethostname()
    assert said[-1] == (
        f"process {ended} on {here} ended without a word; this process takes the run over"
    )
    assert len(said) == (1 if flock else 2)


@pytest.mark.parametrize(
    "content", ["", "process 7 on x", "[1]", '{"pid": -1}', "\0" * 100, "[" * 5000]
)
def test_a_lock_file_that_says_nothing_is_no_obstacle(path: Path, content: str) -> None:
    path.write_text(content)
    said: list[str] = []
    with lock.held(path, said.append):
        assert lock.holder(path) is not None
    assert said == []


def test_without_the_systems_locks_a_living_holder_is_respected(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_flock(monkeypatch)
    mine = Holder.here()
    write(path, mine.pid, started=mine.started)
    with pytest.raises(UserError, match=f"process {mine.pid} on .* is at work"), lock.held(path):
        pass
    assert lock.holder(path) == str(mine)
    if mine.started is None:
        pytest.skip("this system does not tell when a process started")
    write(path, mine.pid, started=1)  # another process that had our number
    with lock.held(path):
        pass


def test_a_holder_on_another_machine_that_is_silent_is_followed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "WATCH", 0.2)
    write(path, 7, ELSEWHERE)
    said: list[str] = []
    with lock.held(path, said.append):
        pass
    assert said[0].startswith(f"process 7 on {ELSEWHERE} had this run; watching")
    assert "takes the run over" in said[1]


def test_one_that_renews_its_lock_is_respected_whatever_its_clock_says(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "WATCH", 10.0)
    write(path, 7, ELSEWHERE)
    done = threading.Event()

    def renew() -> None:
        stamp = 1_000_000_000  # long ago by our clock
        while not done.wait(0.05):
            stamp += 1
            os.utime(path, (stamp, stamp))

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        with (
            pytest.raises(UserError, match=f"if that machine is gone, remove {path}"),
            lock.held(path),
        ):
            pass
    finally:
        done.set()
        thread.join()
    assert json.loads(path.read_text())["host"] == ELSEWHERE


def test_the_holder_renews_its_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "BEAT", 0.01)
    with lock.held(path):
        os.utime(path, (1, 1))
        until = time.monotonic() + 10
        while path.stat().st_mtime == 1:
            assert time.monotonic() < until
            time.sleep(0.01)


def test_a_glance_at_the_lock_keeps_nobody_out(path: Path) -> None:
    path.write_text("")
    glance = os.open(path, os.O_RDONLY)
    assert lock._flock(glance, shared=True)
    threading.Timer(0.2, os.close, [glance]).start()
    with lock.held(path):
        pass


def test_a_folder_removed_while_one_waits_is_noticed(path: Path) -> None:
    with lock.held(path):
        path.unlink()
        with lock.held(path):  # another file of that name: another lock
            pass
