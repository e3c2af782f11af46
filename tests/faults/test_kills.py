"""Runs that are killed, that a disk fails or that another process is at work on, are whole in the
end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import TINY

from robustmd.runs.reader import collect

TESTS = Path(__file__).parent.parent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the harness forks processes")
@pytest.mark.parametrize(
    ("arguments", "runs", "inside"),
    [
        ("--kills 4 --per-run 4 --seed 1", 1, 0),
        pytest.param("--kills 200 --per-run 12 --data digits_mini", 20, 40, marks=pytest.mark.slow),
    ],
)
def test_kills(tmp_path: Path, arguments: str, runs: int, inside: int) -> None:
    """The harness in a process of its own, which forks: pytest's may hold threads."""
    script = [sys.executable, str(TESTS / "faults" / "kill_runs.py"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*script, *arguments.split()], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stdout, done.stderr
    record = json.loads(done.stdout)
    assert record["faults"] == []
    assert record["kills"] == int(arguments.split()[1])
    assert record["runs"] >= runs
    assert record.get("kills inside a write", 0) >= inside


def test_two_sweeps_at_once_in_one_tree(tmp_path: Path, prepared_cache: Path) -> None:
    """One that comes to a run that the other is at work on says so and goes on with the next."""
    command = [sys.executable, "-m", "robustmd", "train", "-m", *TINY, "training.iterations=60"]
    command += ["jobs=1", "method=opt,even"]
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
    for process, (_, err) in zip(both, said, strict=True):
        if process.returncode != 0:
            assert process.returncode == 2
            assert "is at work on this run" in err
            assert any(f"process {other.pid} on" in err for other in both if other is not process)
    found = collect(tmp_path / "outputs")
    assert len(found.runs) == 2
    assert found.problems == ()
