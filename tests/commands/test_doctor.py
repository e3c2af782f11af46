"""`robustmd doctor`: what is off is said with what mends it, and code 1."""

import sys
from importlib import metadata
from pathlib import Path

import pytest

from robustmd import cli, doctor


@pytest.fixture
def folders(tmp_path: Path, prepared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROBUSTMD_CACHE", str(prepared_cache))
    monkeypatch.setenv("ROBUSTMD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_where_all_is_well_a_short_run_says_so_and_leaves_nothing(
    folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", "runtime.device=cpu", "runtime.threads=1"]) == 0
    printed = capsys.readouterr().out
    assert "a short run" in printed
    assert "finished in" in printed
    assert "→ robustmd data digits\n" in "\n".join(map(str.rstrip, printed.splitlines())) + "\n"
    assert "all is here that a run needs" in printed
    assert not list(folders.iterdir())


@pytest.mark.parametrize(
    ("typed", "row", "mend"),
    [
        ("runtime.threads=1000", "threads", "runtime.threads="),
        ("runtime.device=cuda:99", "device", "no such device on this machine"),
        ("paths.outputs=file/outputs", "paths.outputs", "another folder: paths.outputs=FOLDER"),
    ],
)
def test_what_is_off_is_marked_and_code_1(
    folders: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    row: str,
    mend: str,
) -> None:
    (folders / "file").write_text("")
    monkeypatch.setattr(doctor, "_short_run", lambda _: doctor.Finding("a short run", "finished"))
    assert cli.main(["doctor", "runtime.threads=1", typed]) == 1
    lines = capsys.readouterr().out.splitlines()
    (place,) = [i for i, line in enumerate(lines) if line.split()[:1] == ["!"]]
    assert lines[place].split()[1] == row
    assert mend in lines[place + 1]
    assert lines[-1] == f"off: {row}"


def test_a_run_that_cannot_be_is_off(folders: Path) -> None:
    found = doctor._short_run(["runtime.device=cuda:99"])
    assert found.is_off
    assert "no such device on this machine" in found.mend


@pytest.mark.parametrize(("there", "said"), [("1.0", "1.0"), (None, "missing")])
def test_a_package_that_is_missing_or_too_old_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch, there: str | None, said: str
) -> None:
    version = metadata.version

    def of(package: str) -> str:
        if package != "torch":
            return version(package)
        if there is None:
            raise metadata.PackageNotFoundError
        return there

    monkeypatch.setattr(metadata, "version", of)
    (found,) = [one for one in doctor.packages() if one.is_off]
    command = f"{sys.executable} -m pip install 'torch>=2.4'"
    assert found == ("torch", said, command, True)
