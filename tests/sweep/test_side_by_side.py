"""Sweeps in several processes, as they are typed."""

import csv
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from robustmd import cli
from robustmd.runs.listing import list_runs

TINY = [
    "data=digits_mini",
    "training.iterations=4",
    "training.batch_size=8",
    "evaluation.every=2",
    "evaluation.examples=20",
    "evaluation.predictions=false",
    "logging.every=1",
    "backbone.width=0.05",
]
KILLER = """
import os, signal, time
import robustmd
from robustmd.adversary import Fixed

@robustmd.method("killer")
class Killer(robustmd.Settings):
    def build(self, facts):
        os.kill(os.getpid(), signal.SIGKILL)
        return Fixed(facts.num_domains)

@robustmd.method("sleeper")
class Sleeper(robustmd.Settings):
    def build(self, facts):
        print("sleeps", flush=True)
        time.sleep(600)
"""


def typed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "robustmd", "train", "-m", *TINY, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def numbers(path: Path) -> dict[str, list[list[str]]]:
    """metrics.csv and weights.csv but for the seconds."""
    metrics = list(csv.reader((path / "metrics.csv").open()))
    weights = list(csv.reader((path / "weights.csv").open()))
    return {"metrics": [row[:1] + row[2:] for row in metrics], "weights": weights}


def test_side_by_side_gives_the_bytes_of_one_after_another_and_a_killed_run_is_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(KILLER)
    sweep = ["imports=[own]", "method=killer,even,opt", "seed=0"]
    together = typed(tmp_path, *sweep, "jobs=2", "paths.outputs=together")
    assert together.returncode == 1
    assert "3 runs, 2 side by side" in together.stdout
    assert "3| [" not in together.stdout  # a title is marked by itself
    assert "3|   worst training loss" in together.stdout
    assert "robustmd: 1 run did not finish:" in together.stderr
    assert "method=killer seed=0" in together.stderr
    assert "its process ended with SIGKILL (often too little memory" in together.stderr
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"own.py", "together"}
    assert [path.name for path in (tmp_path / "together").iterdir()] == ["digits_mini"]
    alone = ["method=even,opt", "seed=0", "jobs=1", f"paths.outputs={tmp_path / 'alone'}"]
    assert cli.main(["train", "-m", *TINY, *alone]) == 0
    assert "side by side" not in capsys.readouterr().out
    both = [
        {run.path.parts[-3]: numbers(run.path) for run in found if run.status == "finished"}
        for found in (list_runs(tmp_path / "together"), list_runs(tmp_path / "alone"))
    ]
    assert both[0] == both[1]
    assert sorted(both[0]) == ["even", "opt"]


@pytest.mark.slow
def test_ctrl_c_stops_all_at_a_checkpoint_and_the_same_command_goes_on(tmp_path: Path) -> None:
    sweep = [*TINY, "training.iterations=300", "method=even,opt", "seed=0,1", "jobs=2"]
    command = [sys.executable, "-m", "robustmd", "train", "-m", *sweep]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "iteration 2/" in line:
            break
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)  # as a launcher passes on what the terminal has sent as well
    said, _ = process.communicate(timeout=60)
    assert time.monotonic() - begun < 30  # 10 s on a machine with nothing else to do
    assert process.returncode == 128 + signal.SIGINT
    assert said.count("the same command goes on") >= 1
    runs = list_runs(tmp_path / "outputs")
    assert {run.status for run in runs} == {"interrupted"}
    assert typed(tmp_path, *sweep).returncode == 0
    assert [run.status for run in list_runs(tmp_path / "outputs")] == ["finished"] * 4


@pytest.mark.slow
def test_a_second_ctrl_c_waits_for_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(KILLER)
    sweep = [*TINY, "imports=[own]", "method=sleeper", "seed=0,1", "jobs=2"]
    command = [sys.executable, "-m", "robustmd", "train", "-m", *sweep]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    asleep = (line for line in process.stdout if line.endswith("| sleeps\n"))
    assert next(asleep) != next(asleep)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(1.5)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert said == "robustmd: interrupted\n"
