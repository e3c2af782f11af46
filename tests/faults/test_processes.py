"""Several processes at once: every run has one writer, and all are whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults.test_kills import with_tests_on_path

from robustmd.runs.reader import collect

FOLDER = Path(__file__).parent
TINY = [
    "backbone.width=0.05",
    "training.batch_size=20",
    "training.iterations=60",
    "runtime.device=cpu",
    "runtime.threads=1",
]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks processes")
def test_sixteen_runs_by_four_processes_in_one_tree(tmp_path: Path) -> None:
    script = [sys.executable, str(FOLDER / "together.py"), str(tmp_path / "outputs")]
    done = subprocess.run(
        script, capture_output=True, text=True, check=True, env=with_tests_on_path()
    )
    tally = json.loads(done.stdout)
    assert tally["crashed"] == 0, done.stderr
    assert tally["finished"] == 16  # each was trained once
    assert tally["kept"] == 3 * 16
    found = collect(tmp_path / "outputs")
    assert len(found.runs) == 16
    assert found.problems == ()


def test_two_commands_at_once_on_one_run(tmp_path: Path, prepared_cache: Path) -> None:
    command = [sys.executable, "-m", "robustmd", "train", *TINY, "method=opt"]
    environment = {**os.environ, "ROBUSTMD_CACHE": str(prepared_cache)}
    both = [
        subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120) for process in both]
    for process, (out, err) in zip(both, said, strict=True):
        if process.returncode == 0:  # trained it, or came when it was done
            assert "worst training loss" in out or "finished before" in out
        else:
            assert process.returncode == 2
            assert "is at work on this run" in err
            assert any(f"process {other.pid} on" in err for other in both if other is not process)
    assert 0 in [process.returncode for process in both]
    found = collect(tmp_path / "outputs")
    assert len(found.runs) == 1
    assert found.problems == ()
