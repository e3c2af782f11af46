"""The same sweep through Hydra's launchers: those that are installed."""

import subprocess
import sys
from pathlib import Path

import pytest
import tiny

# A cluster of its own, whether or not one runs here, or has left its address behind.
RAY = ["hydra.launcher.ray.init.address=local", "+hydra.launcher.ray.init.num_cpus=2"]
LAUNCHERS = {
    "side_by_side": ("robustmd", ["jobs=2"]),
    "joblib": ("hydra_joblib_launcher", ["hydra.launcher.n_jobs=2"]),
    "submitit_local": ("hydra_submitit_launcher", ["hydra.sweep.dir=submitted"]),
    "ray": ("hydra_ray_launcher", RAY),
}
SIX = """# @package _global_
sweep:
  rows:
    - {method: even}
    - {method: opt, method.lam: 0.3}
  params: {seed: "0,1,2"}
"""
FAILING = """# @package _global_
sweep: {rows: [{method: even}, {method: opt, training.learning_rate: 1.0e+37}]}
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
    assert done.returncode == 1
    last = done.stderr.rstrip().splitlines()[-1]
    assert "training.learning_rate=1e+37: the loss of handwritten was not finite" in last
    assert len([*(tmp_path / launcher).rglob("summary.json")]) == 2
