"""Processes that work through jobs: what comes back of each, however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest
from jobs_of_workers import answer

from robustmd.sweep.workers import End, Worker

ORPHAN = """
import sys
sys.path[:0] = {path!r}
from jobs_of_workers import answer
from robustmd.sweep.workers import Worker
if __name__ == "__main__":
    worker = Worker(answer, {{}})
    worker.give(("sleep", 600))
    while not (lines := list(worker.lines())):
        pass
    print(lines[0], flush=True)
    import time; time.sleep(600)
"""


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(answer, {"ROBUSTMD_TEST": "of the process"})
    yield made
    made.close()


def played(worker: Worker, job: object) -> tuple[End, list[str]]:
    worker.give(job)
    lines: list[str] = []
    end = None
    while end is None:
        wait(worker.awaited, 20)
        end = worker.end()
        lines += worker.lines()
    assert worker.job is None
    return end, lines


def test_one_process_does_job_after_job_and_its_lines_come_back(worker: Worker) -> None:
    end, lines = played(worker, ("print", "λ"))
    assert (end, lines) == (End("λ"), ["λ", "to the other stream"])
    assert played(worker, ("variable", "ROBUSTMD_TEST"))[0].value == "of the process"
    assert "ROBUSTMD_TEST" not in os.environ
    assert played(worker, ("number", 3))[0] == End(3)
    assert played(worker, ("die", "SIGKILL")) == (End(killed_by="SIGKILL"), ["last words"])
    assert not worker.is_alive
    assert played(worker, ("number", 3)) == (End(killed_by="SIGKILL"), [])


def test_a_process_whose_pipe_closes_has_its_job_until_it_is_dead(worker: Worker) -> None:
    worker.give(("hang up", 0.5))
    while not list(worker.lines()):
        pass
    assert worker.end() is None
    assert worker.job == ("hang up", 0.5)
    until = time.monotonic() + 20
    while (end := worker.end()) is None and time.monotonic() < until:
        time.sleep(0.05)
    assert end == End(killed_by="exit code 3")


def test_without_its_parent_a_worker_ends(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(ORPHAN.format(path=sys.path))
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    orphan = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until = time.monotonic() + 20
    while Path(f"/proc/{orphan}/cmdline").exists() and time.monotonic() < until:
        if not Path(f"/proc/{orphan}/cmdline").read_bytes():  # a zombie that nobody asks for
            break
        time.sleep(0.05)
    else:
        assert time.monotonic() < until
