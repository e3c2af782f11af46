"""`robustmd data` as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robustmd.cli import main


@pytest.fixture
def data(tmp_path: Path, prepared_cache: Path, monkeypatch, capsys):
    """Runs `robustmd data` in this process; returns (exit code, out, err)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROBUSTMD_CACHE", str(prepared_cache))
    monkeypatch.setenv("ROBUSTMD_DATA", str(tmp_path / "none"))

    def go(*arguments: str) -> tuple[int, str, str]:
        code = main(["data", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return go


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two domains of two classes; one photo is in train and test, and in both domains."""
    rng = np.random.default_rng(0)
    same = rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)
    for domain in ("one", "two"):
        for split in ("train", "test"):
            for label in ("cat", "dog"):
                folder = tmp_path / "photos" / domain / split / label
                folder.mkdir(parents=True)
                for i in range(3):
                    pixels = rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)
                    Image.fromarray(pixels).save(folder / f"{i}.png")
    for place in ("one/train", "one/test", "two/train"):
        Image.fromarray(same).save(tmp_path / "photos" / place / "cat" / "same.png")
    return tmp_path / "photos"


def test_names_of_domains_are_neither_markup_nor_control(
    photos: Path, tmp_path: Path, data
) -> None:
    (photos / "one").rename(photos / "[red]one")
    (photos / "two").rename(photos / "two\u202ea")
    code, out, _ = data("folder", f"data.root={photos}", f"paths.cache={tmp_path / 'own'}")
    assert code == 0
    assert "[red]one" in out
    assert r"two\u202ea" in out
    assert all(line.isprintable() for line in out.split("\n"))


def test_check_reads_all_prepared_arrays(photos: Path, tmp_path: Path, data) -> None:
    command = ("folder", f"data.root={photos}", f"paths.cache={tmp_path / 'own'}", "--check")
    code, out, _ = data(*command)
    assert (code, "Checked" in out) == (0, True)
    manifest = next((tmp_path / "own").glob("*/manifest.json"))
    content = json.loads(manifest.read_text())
    content["arrays"]["labels_1"]["checksum"] = "0" * 64
    manifest.write_text(json.dumps(content))
    code, _, err = data(*command)
    assert (code, "labels_1.npy" in err) == (2, True)
    assert data("--check")[0] == 2


def test_a_real_process_needs_no_torch_and_ends_with_0(
    tmp_path: Path, prepared_cache: Path
) -> None:
    code = (
        "import sys\nfrom robustmd.cli import main\n"
        "assert main(['data', 'digits_mini', '--show', 'mini.png']) == 0\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "ROBUSTMD_CACHE": str(prepared_cache)},
    )
    assert done.stdout.splitlines()[-1] == "False"
    assert Image.open(tmp_path / "mini.png").format == "PNG"


def test_the_table_says_what_is_in_it(data, prepared_cache: Path) -> None:
    code, out, err = data("digits_mini", "data.validation=0.1")
    assert (code, err) == (0, "")
    head = next(line for line in out.splitlines() if line.startswith("domain"))
    assert head.split()[:6] == ["domain", "train", "val", "test", "classes", "bytes"]
    row = next(line for line in out.splitlines() if line.startswith("handwritten"))
    assert row.split()[1:5] == ["1,260", "140", "397", "10"]
    assert "made here" in row
    assert "CC BY 4.0" in row
    assert "Exact duplicates: none" in out
    assert "images of 32×32 RGB" in out
    assert f"Prepared in: {prepared_cache}" in out


def test_duplicates_are_found_and_a_sheet_drawn(data, photos: Path, tmp_path: Path) -> None:
    code, out, _ = data("folder", f"data.root={photos}", "--show", "sheet.pdf", "data.size=16")
    assert code == 0
    assert "one train and one test: 1 images in both; 1 examples of one test" in out
    assert "one train and two train: 1 images in both" in out
    assert "own files" in out
    assert (tmp_path / "sheet.pdf").read_bytes().startswith(b"%PDF-")


def test_without_a_name_every_data_set_is_listed(data, tmp_path: Path) -> None:
    from robustmd.config.settings import OPTIONS

    code, out, _ = data()
    assert code == 0
    names = {line.split()[0] for line in out.splitlines() if line.strip()}
    assert {*OPTIONS["data"].offered} <= names
    assert "MNIST missing" in out
    assert str(tmp_path / "none") in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "data=nonsense: no such option; allowed: digits, digits_mini"),
        (["digits_mini", "method=even"], "method=even: data takes key=value with"),
        (["digits_mini", "extra"], "extra: data takes key=value with"),
        (["digits_mini", "data.sise=3"], "data.sise: no such key for data=digits_mini"),
        (["digits_mini", "data.validation=2"], "data.validation=2.0: must be a number in [0, 1)"),
        (["data=digits_mini"], "the data set is named without data="),
        (["digits_mini", "--show", "a.jpg"], "--show a.jpg: must end in .png or .pdf"),
        (["digits_mini", "--show", "no/a.png"], "--show no/a.png: there is no folder no"),
        (["--show", "a.png"], "--show a.png: say of which data set"),
        (["folder"], "data=folder: say where the images are"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(data, arguments: list[str], words: str) -> None:
    code, _, err = data(*arguments)
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1
