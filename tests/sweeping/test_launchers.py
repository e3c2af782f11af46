"""The same sweep through Hydra's launchers: those that are installed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny
from hydra._internal.core_plugins import basic_launcher
from hydra.core.utils import run_job

from robustmd import cli
from robustmd.commands.train import Task
from robustmd.sweeping.failures import RECORD
from robustmd.sweeping.picture import SIZE

# A cluster of its own, whether or not one runs here, or has left its address behind.
RAY = ["hydra.launcher.ray.init.address=local", "+hydra.launcher.ray.init.num_cpus=2"]
LAUNCHERS = {
    "side_by_side": ("robustmd", ["jobs=2"]),
    "joblib": ("hydra_joblib_launcher", ["hydra.launcher.n_jobs=2"]),
    "submitit_local": ("hydra_submitit_launcher", ["hydra.sweep.dir=submitted"]),
    "ray": ("hydra_ray_launcher", RAY),
}
SIX = """# @package _global_
hydra:
  mode: MULTIRUN
  sweeper:
    rows:
      - {method: even}
      - {method: opt, method.lam: 0.3}
    params: {seed: "0,1,2"}
"""
FAILING = """# @package _global_
hydra:
  mode: MULTIRUN
  sweeper: {rows: [{method: even}, {method: opt, method.lam: -1}]}
"""
TINY = [
    "data=digits_mini",
    "training.iterations=6",
    "training.batch_size=8",
    "evaluation.every=3",
    "evaluation.examples=20",
    "logging.every=1",
    "backbone.width=0.05",
    "runtime.threads=1",
]


def swept(folder: Path, text: str, launcher: str, *more: str) -> subprocess.CompletedProcess[str]:
    """The experiment of that text, from an empty folder; its outputs are named for the launcher."""
    (folder / "experiment").mkdir(exist_ok=True)
    (folder / "experiment" / "own.yaml").write_text(text)
    arguments = ["--config-dir", ".", "experiment=own", *TINY, f"hydra/launcher={launcher}", *more]
    command = [sys.executable, "-m", "robustmd", "train", *arguments, f"paths.outputs={launcher}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_job_with_another_environment_knows_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def elsewhere(**arguments: Any) -> Any:  # as on a machine of a cluster that ran before
        with monkeypatch.context() as patch:
            for name in (SIZE, RECORD):
                patch.delenv(name)
            return run_job(**arguments)

    monkeypatch.setattr(basic_launcher, "run_job", elsewhere)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Task, "failures", property(lambda _: [], lambda *_: None), raising=False)
    assert cli.main(["train", "-m", "method.lam=1,-1", "--list"]) == 2
    said = capsys.readouterr().err
    assert "[run 2 of 2] method.lam=-1: method.lam=-1.0: must be a number > 0" in said
    assert not [*(tmp_path / "outputs").glob(".sweep*")]


@pytest.fixture(scope="module")
def one_after_another(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("basic")
    done = swept(folder, SIX, "basic")
    assert done.returncode == 0, done.stderr
    return folder / "basic"


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_six_runs_have_the_same_bytes(
    tmp_path: Path, one_after_another: Path, launcher: str
) -> None:
    module, more = LAUNCHERS[launcher]
    pytest.importorskip(f"hydra_plugins.{module}")
    done = swept(tmp_path, SIX, launcher, *more)
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    found = sorted(path.parent for path in (tmp_path / launcher).rglob("summary.json"))
    assert len(found) == 6
    for path in found:
        there = one_after_another / path.relative_to(tmp_path / launcher)
        for name in ("metrics.csv", "weights.csv"):
            assert tiny.rows(path, name) == tiny.rows(there, name)


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_job_that_fails_is_named_with_its_reason_at_the_end(
    tmp_path: Path, launcher: str
) -> None:
    module, more = LAUNCHERS[launcher]
    pytest.importorskip(f"hydra_plugins.{module}")
    done = swept(tmp_path, FAILING, launcher, *more)
    print(done.stdout, done.stderr)
    assert done.returncode == 2
    last = done.stderr.rstrip().splitlines()[-1]
    assert "method.lam=-1: method.lam=-1.0: must be a number > 0" in last
    assert len([*(tmp_path / launcher).rglob("summary.json")]) == 1
