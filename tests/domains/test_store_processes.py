"""Several processes and one store: one prepares, the others wait; a killed one leaves no store."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from robustmd.domains.store import Recipe, open_store
from robustmd.errors import UserError

PROCESS = """
import json, sys, time
from pathlib import Path
import numpy as np
from robustmd.domains.store import Recipe, open_store
from robustmd.errors import UserError
folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
if sys.argv[3]:  # the largest file that this process may write, in bytes
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)

def build(writer):
    with (folder / "built").open("a") as file:
        file.write("x")
    half = np.full((500, 1000), 7, np.uint8)
    def blocks():
        yield half
        (folder / "half").touch()
        time.sleep(seconds)
        yield half
    writer.add("values", "uint8", (1000, 1000), blocks())

lines = []
recipe = Recipe("tried", 1, {}, build, sources={}, md5=str)
try:
    store = open_store(folder / "cache", recipe, lambda md5s: None, lines.append)
    print(json.dumps({"lines": lines, "sum": int(store.arrays["values"].sum())}))
except UserError as error:
    print(json.dumps({"error": str(error)}))
"""


def start(folder, seconds, limit=""):
    command = [sys.executable, "-c", PROCESS, str(folder), str(seconds), limit]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result(process):
    return json.loads(process.communicate(timeout=60)[0])


def wait_for(path):
    end = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.01)


def test_two_processes_prepare_once(tmp_path):
    first = start(tmp_path, 1.5)
    wait_for(tmp_path / "half")
    second, third = start(tmp_path, 1.5), start(tmp_path, 1.5)
    results = [result(process) for process in (first, second, third)]
    assert [r["sum"] for r in results] == [7_000_000] * 3
    assert (tmp_path / "built").read_text() == "x"
    for waited in results[1:]:
        (line,) = waited["lines"]
        assert line.startswith(f"process {first.pid} on ")
        assert line.endswith(" is busy with preparing tried; waiting for it")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is a POSIX signal")
def test_killed_preparation_is_not_taken_for_whole_nor_waited_for(tmp_path):
    first = start(tmp_path, 60)
    wait_for(tmp_path / "half")
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    assert not list((tmp_path / "cache").glob("tried-*/manifest.json"))
    assert result(start(tmp_path, 0))["sum"] == 7_000_000
    assert not list((tmp_path / "cache").glob(".tried*"))


@pytest.mark.skipif(sys.platform == "win32", reason="resource is a POSIX module")
def test_disk_that_takes_no_more(tmp_path):
    """A real failed write, by a limit on files' size; without the limit the same succeeds."""
    error = result(start(tmp_path, 0, limit="100000"))["error"]
    assert "File too large" in error
    assert "paths.cache=DIR" in error
    assert not list((tmp_path / "cache").glob("*/*"))
    assert result(start(tmp_path, 0))["sum"] == 7_000_000


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named_as_that(tmp_path, monkeypatch, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", refuse)
    recipe = Recipe("tried", 1, {}, lambda writer: None, sources={}, md5=str)
    with pytest.raises(UserError, match=r"(locks|supported).* paths\.cache=DIR"):
        open_store(tmp_path, recipe, lambda md5s: None, print)
