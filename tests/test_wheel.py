"""The built wheel, in an environment that has nothing else of ours: conf/ ships, runs run."""

import os
import shutil
import subprocess
import sys
import sysconfig
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
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("robustmd", "conf"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(work)]
    subprocess.run([*build, str(source)], check=True, capture_output=True)
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
    done = run(installed, tmp_path, "train", "--info", "searchpath")
    assert done.returncode == 0, done.stderr
    assert "pkg://robustmd.conf" in done.stdout
    where = run(installed.parent / "python", tmp_path, "-c", "import robustmd.conf as c; print(c)")
    assert str(installed.parent.parent) in where.stdout


def test_the_wheel_has_every_yaml(installed: Path) -> None:
    (conf,) = installed.parent.parent.glob("lib/*/site-packages/robustmd/conf")
    shipped = {path.relative_to(conf) for path in conf.rglob("*.yaml")}
    assert shipped == {path.relative_to(ROOT / "conf") for path in (ROOT / "conf").rglob("*.yaml")}


def test_the_wheel_has_every_template(installed: Path) -> None:
    (shipped,) = installed.parent.parent.glob("lib/*/site-packages/robustmd/report/templates")
    written = ROOT / "robustmd" / "report" / "templates"
    assert {path.name for path in shipped.iterdir()} == {path.name for path in written.iterdir()}


def test_the_wheel_has_every_module(installed: Path) -> None:
    """pyproject names the packages one by one: none may be forgotten."""
    (packages,) = installed.parent.parent.glob("lib/*/site-packages")
    shipped = {p.relative_to(packages / "robustmd") for p in (packages / "robustmd").rglob("*.py")}
    written = {p.relative_to(ROOT / "robustmd") for p in (ROOT / "robustmd").rglob("*.py")}
    sweeper = Path("config/sweeper/__init__.py")  # Hydra finds it in its own package alone
    assert shipped == written - {sweeper} | {Path("conf/__init__.py")}
    assert (packages / "hydra_plugins" / "robustmd" / "__init__.py").is_file()
