"""scripts/demo.sh, with a program in robustmd's place that writes down what it is called with."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """#!/bin/sh
echo "$*" >> calls
mkdir -p outputs/run report
echo "$*" > "$([ "$1" = report ] && echo report/index.html || echo outputs/run/summary.json)"
"""
TRAINED = ["train experiment=demo", "train experiment=demo_turned"]
ALL = [*TRAINED, "report outputs --out report"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the repository, as far as the script looks at it, with its environment made."""
    for name in ("demo.sh", "environment.sh"):
        (tmp_path / "scripts").mkdir(exist_ok=True)
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in ("robustmd", "conf", "outputs/published", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "robustmd" / "code.py").touch()
    shutil.copy(ROOT / "pyproject.toml", tmp_path / ".venv" / "robustmd-installed")
    program = tmp_path / ".venv" / "bin" / "robustmd"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return tmp_path


def called(copy: Path, **variables: str) -> list[str]:
    """What one call of the script ran."""
    (copy / "calls").unlink(missing_ok=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ROBUSTMD_")}
    environment |= {"PYTHON": sys.executable, **variables}
    script = copy / "scripts" / "demo.sh"
    subprocess.run(["bash", script], env=environment, check=True, capture_output=True)
    calls = copy / "calls"
    return calls.read_text().splitlines() if calls.exists() else []


def later(path: Path) -> None:
    """As it would be if it had been written after the last call, whatever the clock's grain."""
    seen = path.stat().st_mtime + 10
    os.utime(path, (seen, seen))


def test_a_second_call_does_nothing_where_nothing_has_changed(copy: Path) -> None:
    assert called(copy) == ALL
    assert called(copy) == []
    assert called(copy, ROBUSTMD_CONFIG_DIR="mine") == ALL


@pytest.mark.parametrize(
    "path",
    ["outputs/run/summary.json", "outputs", "report/index.html", "robustmd/code.py", "conf"],
)
def test_a_file_that_is_changed_or_has_gone_is_seen(copy: Path, path: str) -> None:
    """A folder is as old as its last file that came or went."""
    called(copy)
    later(copy / path)
    assert called(copy) == ALL


def test_a_call_that_failed_is_made_again(copy: Path) -> None:
    program = copy / ".venv" / "bin" / "robustmd"
    program.write_text(PROGRAM + '[ "$1" = train ]\n')
    with pytest.raises(subprocess.CalledProcessError):
        called(copy)
    program.write_text(PROGRAM)
    assert called(copy) == ALL
