"""The wheel built from the sdist, in an environment that has nothing else of ours: runs run."""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `robustmd` command of a fresh environment with the wheel in it; no network is used.

    The dependencies are this environment's, seen through a .pth file, which does not follow the
    checkout's editable install.
    """
    work = tmp_path_factory.mktemp("wheel")
    source = work / "source"  # a copy: building leaves files behind
    source.mkdir()
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("robustmd", "conf"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    sdist = f"import setuptools.build_meta as b; b.build_sdist({str(work)!r})"
    subprocess.run([sys.executable, "-c", sdist], cwd=source, check=True, capture_output=True)
    (archive,) = work.glob("*.tar.gz")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(work)]
    subprocess.run([*build, str(archive)], check=True, capture_output=True)
    (wheel,) = work.glob("*.whl")
    environment = work / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    install = [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (packages,) = environment.glob("lib/*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin" / "robustmd"


def run(command: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [command, *arguments],
        cwd=folder,
        env={**environment, "ROBUSTMD_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_trains_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    arguments = ["data=digits_mini", "training.iterations=20", "backbone.width=0.05"]
    done = run(installed, tmp_path, "train", *arguments)
    assert done.returncode == 0, done.stderr
    (directory,) = (tmp_path / "outputs").glob("digits_mini/opt/*/seed=0")
    assert (directory / "summary.json").exists()


def test_its_conf_is_the_packaged_one(installed: Path, tmp_path: Path) -> None:
    where = run(installed.parent / "python", tmp_path, "-c", "import robustmd.conf as c; print(c)")
    assert str(installed.parent.parent) in where.stdout


def files(folder: Path) -> set[Path]:
    """All in it but what Python keeps of them."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder) for path in found if path.parent.name != "__pycache__"}


def test_the_wheel_has_every_file(installed: Path) -> None:
    """pyproject names the packages one by one: none may be forgotten."""
    (packages,) = installed.parent.parent.glob("lib/*/site-packages")
    written = files(ROOT / "robustmd") | {Path("conf") / path for path in files(ROOT / "conf")}
    assert files(packages / "robustmd") == written


def own_code() -> str:
    """The file that docs/own_code.md shows."""
    page = (ROOT / "docs" / "own_code.md").read_text("utf-8")
    return page.partition("```python\n")[2].partition("```")[0]


@pytest.mark.slow
def test_a_project_of_others_is_type_checked_against_it(installed: Path, tmp_path: Path) -> None:
    """py.typed ships: mypy reads the public names' types, and finds a wrong one."""
    code = own_code().replace("def build(self, facts):", "def build(self, facts: Any) -> Any:")
    code = code.replace("import torch\n", "from typing import Any\n\nimport torch\n", 1)
    code += "\nadversary = Fixed(3, prior=[0.2, 0.3, 0.5])\nreveal_type(adversary.weights)\n"
    (tmp_path / "consumer.py").write_text(code + 'Fixed("three")\n', "utf-8")
    checked = [sys.executable, "-m", "mypy", "--python-executable", installed.parent / "python"]
    done = subprocess.run(
        [*checked, "consumer.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert 'Revealed type is "torch._tensor.Tensor"' in done.stdout
    assert "untyped" not in done.stdout
    (wrong,) = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert 'has incompatible type "str"; expected "int"' in wrong


OWN = ["imports=[my_code]", "data=blobs", "backbone=tiny", "evaluation.metrics=[top2]"]
SHORT = ["training.batch_size=30", "checkpoint.every=10", "runtime.threads=1"]


def test_own_method_data_backbone_and_metric_from_one_file(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "my_code.py").write_text(own_code(), "utf-8")
    command = ["train", "-m", "jobs=1", *OWN, *SHORT, "method=tilt,opt", "seed=0,1"]
    done = run(installed, tmp_path, *command, "training.iterations=20")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    runs = sorted((tmp_path / "outputs" / "blobs").glob("*/*/seed=*"))
    assert [path.parent.parent.name for path in runs] == ["opt", "opt", "tilt", "tilt"]
    measures = (runs[0] / "measures.csv").read_text().splitlines()
    assert measures[0] == "iteration,split,domain,metric,value"
    assert measures[-1].startswith("20,test,dark,top2,")

    done = run(installed, tmp_path, "report", "outputs", "--out", "report")
    assert done.returncode == 0, done.stderr
    assert "tilt" in (tmp_path / "report" / "README.md").read_text()
    done = run(installed, tmp_path, "evaluate", str(runs[-1]), "imports=[my_code]")
    assert "agrees with summary.json" in done.stdout, done.stderr
    done = run(installed, tmp_path, "evaluate", str(runs[-1]))
    assert "comes with imports=[MODULE]" in done.stderr
    assert done.returncode == 2


def test_a_run_of_own_code_that_was_killed_goes_on(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "my_code.py").write_text(own_code(), "utf-8")
    arguments = [*OWN, *SHORT, "method=tilt", "training.iterations=800", "evaluation.every=400"]
    twin = run(installed, tmp_path, "train", *arguments, "paths.outputs=twin")
    assert twin.returncode == 0, twin.stderr
    first = subprocess.Popen(
        [installed, "train", *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    while not list(tmp_path.glob("outputs/blobs/tilt/*/seed=0/checkpoints/iteration-*.pt")):
        assert first.poll() is None
        time.sleep(0.02)
    first.kill()
    first.wait()
    text = own_code()
    (tmp_path / "my_code.py").write_text(text + "# changed\n", "utf-8")
    refused = run(installed, tmp_path, "train", *arguments)
    assert refused.returncode == 2
    assert "began with other code in my_code" in refused.stderr
    (tmp_path / "my_code.py").write_text(text, "utf-8")
    done = run(installed, tmp_path, "train", *arguments)
    assert done.returncode == 0, done.stderr
    assert "resumed after iteration" in done.stdout
    for name in ("weights.csv", "measures.csv"):
        (a,), (b,) = (tmp_path.glob(f"{top}/blobs/*/*/*/{name}") for top in ("twin", "outputs"))
        assert a.read_bytes() == b.read_bytes()
