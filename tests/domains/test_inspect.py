"""`robustmd data` as a user types it; the images that splits share; the picture of examples."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robustmd.cli import main
from robustmd.domains import DomainSet
from robustmd.domains.inspect import draw_examples, duplicates_in_words
from robustmd.domains.noise import noise_copies


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


def test_the_table_says_what_is_in_it(data, prepared_cache: Path) -> None:
    code, out, err = data("digits_mini", "data.validation=0.1")
    assert (code, err) == (0, "")
    head = next(line for line in out.splitlines() if line.startswith("domain"))
    assert head.split()[:6] == ["domain", "train", "val", "test", "classes", "licence"]
    row = next(line for line in out.splitlines() if line.startswith("handwritten"))
    assert row.split()[1:5] == ["1,260", "140", "397", "10"]
    assert "CC BY 4.0" in row
    assert "Exact duplicates: none" in out
    assert "10 classes, 32×32, 27.1 MB prepared" in out
    assert f"Prepared in: {prepared_cache}" in out


def test_duplicates_are_found_and_a_sheet_drawn(data, photos: Path, tmp_path: Path) -> None:
    own = "folder", f"data.root={photos}", f"paths.cache={tmp_path / 'own'}", "data.size=16"
    code, out, _ = data(*own, "--show", "sheet.pdf", "--check")
    assert code == 0
    assert "Checked: all prepared arrays" in out
    assert "one train and one test: 1 images in both; 1 examples of one test" in out
    assert "one train and two train: 1 images in both" in out
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
        (["data=digits_mini"], "name the data set without data="),
        (["digits_mini", "--show", "a.jpg"], "--show a.jpg: must end in .png or .pdf"),
        (["digits_mini", "--show", "no/a.png"], "--show no/a.png: there is no folder no"),
        (["--show", "a.png"], "--show a.png: say of which data set"),
        (["--check"], "--check: say of which data set"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(data, arguments: list[str], words: str) -> None:
    code, _, err = data(*arguments)
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1


# --- the same image twice -------------------------------------------------------------------------


def toy(change=lambda x, y: None) -> DomainSet:
    """Domains a and b of 20 + 10 images, after `change` of the arrays by split, as "a train"."""
    rng = np.random.default_rng(0)
    splits = {"a train": 20, "a test": 10, "b train": 20, "b test": 10}
    x = {k: rng.integers(0, 256, (n, 8, 8, 3), dtype=np.uint8) for k, n in splits.items()}
    y = {key: np.zeros(count, np.int64) for key, count in splits.items()}
    change(x, y)
    parts = ("train", "test")
    domains = {d: [v[f"{d} {split}"] for split in parts for v in (x, y)] for d in "ab"}
    return DomainSet.from_tensors(domains, classes=["0", "1"])


def test_planted_duplicates_are_counted_by_pairs_of_splits():
    def plant(x, y):
        x["a test"][[2, 3]] = x["b train"][7] = x["a train"][5]  # one image, twice in test
        x["b test"][1] = x["b test"][0]

    assert [line.strip() for line in duplicates_in_words(toy(plant))[1:]] == [
        "within a test: 1 images more than once, 2 examples",
        "a train and a test: 1 images in both; 2 examples of a test",
        "a train and b train: 1 images in both; 1 examples of b train",
        "a test and b train: 1 images in both; 1 examples of b train",
        "within b test: 1 images more than once, 2 examples",
    ]


# --- the picture of examples ----------------------------------------------------------------------


def drawn(data: DomainSet) -> np.ndarray:
    stream = io.BytesIO()
    draw_examples(data, stream, "png")
    return np.asarray(Image.open(stream).convert("RGB"))


def test_a_picture_shows_each_domains_images_in_its_row():
    """Two classes of one gray each, which no other part of the picture has."""
    grays = {"a": (40, 60), "b": (140, 160)}
    labels = np.arange(8) % 2
    domains = {}
    for name, levels in grays.items():
        images = (
            np.full((8, 16, 16, 3), 0, np.uint8)
            + np.array(levels, np.uint8)[labels, None, None, None]
        )
        domains[name] = (images, labels) * 2
    picture = drawn(DomainSet.from_tensors(domains))
    rows, columns = zip(
        *(
            np.argwhere((picture == level).all(axis=2)).mean(axis=0)
            for levels in grays.values()
            for level in levels
        ),
        strict=True,
    )
    assert max(rows[:2]) < min(rows[2:])
    assert columns[0] < columns[1]


def test_examples_are_drawn_as_they_are_seen_and_alike_each_time():
    plain = toy()
    noisy = noise_copies(plain, "a", [0, 60], "noise")
    assert np.array_equal(drawn(noisy), drawn(noisy))
    assert not np.array_equal(drawn(noisy), drawn(noise_copies(plain, "a", [0, 30], "noise")))


def test_names_are_no_formulas():
    x, y = np.zeros((4, 8, 8, 3), np.uint8), np.arange(4) % 2
    names = ["$$", r"$\frac$"]
    drawn(DomainSet.from_tensors(dict.fromkeys(names, (x, y) * 2), classes=["$a", "_{"]))
