"""Several processes at once: every run has one writer, and all are whole."""

import os
import subprocess
import sys
from pathlib import Path

from robustmd.runs.reader import collect

TINY = [
    "backbone.width=0.05",
    "training.batch_size=20",
    "training.iterations=60",
    "runtime.device=cpu",
    "runtime.threads=1",
]


def test_two_sweeps_at_once_in_one_tree(tmp_path: Path, prepared_cache: Path) -> None:
    """One that comes to a run that the other is at work on says so and goes on with the next."""
    command = [sys.executable, "-m", "robustmd", "train", "-m", *TINY, "jobs=1"]
    command += ["method=opt,even"]
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
