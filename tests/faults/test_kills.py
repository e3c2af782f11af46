"""Runs that are killed, or that a disk fails, finish as if nothing had happened."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the harness forks processes")


def kill(folder: Path, *arguments: str) -> dict[str, Any]:
    """The harness in a process of its own, which forks: pytest's may hold threads."""
    script = [sys.executable, str(TESTS / "faults" / "kill_runs.py"), str(folder), *arguments]
    done = subprocess.run(
        script, capture_output=True, text=True, check=False, env=with_tests_on_path()
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def with_tests_on_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}


def test_six_kills(tmp_path: Path) -> None:
    record = kill(tmp_path, "--kills", "6", "--per-run", "3", "--seed", "1")
    assert record["faults"] == []
    assert record["kills"] == 6


@pytest.mark.slow
def test_two_hundred_kills_over_every_method(tmp_path: Path) -> None:
    record = kill(tmp_path, "--kills", "200", "--per-run", "12", "--data", "digits_mini")
    assert record["faults"] == []
    assert record["runs"] >= 20
    assert record["kills inside a write"] >= 40
