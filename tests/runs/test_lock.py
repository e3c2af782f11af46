"""One writer a run, whatever became of the one before."""

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustmd.runs import lock

CODE = """
import pathlib, sys
from robustmd.runs import lock
with lock.held(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of `tmp_path`."""
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_told_who_holds_it_and_what_to_remove(
    tmp_path: Path, other: subprocess.Popen[str]
) -> None:
    name = f"process {other.pid} on {socket.gethostname()}"
    for _ in range(2):  # who was refused leaves the name
        with pytest.raises(lock.Busy) as refused, lock.held(tmp_path):
            pass
        assert f"{name} is at work" in str(refused.value)
        assert f"remove {tmp_path / 'lock'}" in str(refused.value)
        assert lock.holder(tmp_path) == name


def test_a_killed_holder_leaves_no_lock_behind(
    tmp_path: Path, other: subprocess.Popen[str]
) -> None:
    other.kill()
    other.wait()
    assert lock.holder(tmp_path) is None
    with lock.held(tmp_path):
        assert lock.holder(tmp_path) == f"process {os.getpid()} on {socket.gethostname()}"
    assert lock.holder(tmp_path) is None


@pytest.mark.filterwarnings("ignore:flock not supported")
def test_without_the_systems_locks_the_file_is_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def none_here(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", none_here)
    for _ in range(2):  # it is free again
        with lock.held(tmp_path):
            with pytest.raises(lock.Busy, match="is at work"), lock.held(tmp_path):
                pass
            assert lock.holder(tmp_path) == f"process {os.getpid()} on {socket.gethostname()}"
        assert lock.holder(tmp_path) is None


def test_a_link_or_a_pipe_in_its_place_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "lock").symlink_to(victim)
    for look in (lock.holder, lambda run: lock.held(run).__enter__()):
        with pytest.raises(OSError, match="not followed"):
            look(tmp_path)
    assert victim.read_text() == "mine"
    (tmp_path / "lock").unlink()
    os.mkfifo(tmp_path / "lock")
    with pytest.raises(OSError, match="is not a file"):
        lock.holder(tmp_path)
