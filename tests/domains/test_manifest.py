"""data.manifest: a CSV file of images, read as it says or refused with lines and a count."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import refused

from robustmd.domains import DomainSet
from robustmd.domains.folder import load

Load = Callable[..., DomainSet]
IMAGES = [f"images/{number:02}.png" for number in range(20)]


@pytest.fixture
def table(tmp_path: Path) -> Load:
    """Loads a manifest with this text; beside it lie IMAGES, number i of gray i."""
    folder = tmp_path / "of {mine}"  # no field of a text to be filled in
    (folder / "images").mkdir(parents=True)
    for gray, name in enumerate(IMAGES):
        Image.new("L", (9, 9), gray).save(folder / name)
    Image.new("L", (9, 9), 99).save(tmp_path / "outside.png")

    def write_and_load(text: str | bytes, **settings: Any) -> DomainSet:
        manifest = folder / "my manifest.csv"
        manifest.write_bytes(text.encode() if isinstance(text, str) else text)
        return load(tmp_path / "cache", manifest=manifest, size=8, **settings)

    return write_and_load


def lines(*rows: str, header: str = "path,domain,label,split") -> str:
    return "\n".join([header, *rows, ""])


def good(splits: Callable[[int], str] = lambda i: "") -> list[str]:
    """Twenty rows: two domains, two labels each."""
    return [f"{name},{'ab'[i % 2]},{'xy'[i // 2 % 2]},{splits(i)}" for i, name in enumerate(IMAGES)]


def grays(examples) -> list[int]:
    return examples.images[:, 0, 0, 0].tolist()


def test_rows_are_examples_and_splits_are_kept(table):
    data = table(lines(*good(lambda i: "test" if i >= 14 else "val" if i >= 12 else "train")))
    assert (data.names, data.classes) == (("a", "b"), ("x", "y"))
    a = data["a"]
    assert grays(a.train) == [0, 2, 4, 6, 8, 10]
    assert a.train.targets.tolist() == [0, 1, 0, 1, 0, 1]
    assert a.val is not None
    assert grays(a.val) == [12]
    assert grays(a.test) == [14, 16, 18]


def test_without_splits_they_are_drawn(table):
    empty = table(lines(*good()))
    rows = [row.rstrip(",") for row in good()]
    without = table(lines(*rows, header="path,domain,label"))
    assert empty.fingerprint == without.fingerprint
    assert [(len(d.train), len(d.test)) for d in empty] == [(8, 2), (8, 2)]


def test_the_order_of_rows_and_columns_does_not_matter(table):
    rows = good()
    swapped = [",".join(reversed(row.split(","))) for row in reversed(rows)]
    first = table(lines(*rows))
    assert table(lines(*swapped, header="split,label,domain,path")).fingerprint == first.fingerprint


def test_what_spreadsheets_write_is_read(table):
    """A byte order mark, CRLF, quotes, blank space, empty lines."""
    rows = ['"{}", {} ,"{}", '.format(*row.split(",")) for row in good()]
    text = "\ufeff" + "\r\n".join(["path, domain,label ,split", *rows, "", ""])
    assert table(text).fingerprint == table(lines(*good())).fingerprint


def grouped(*places: str) -> str:
    """Twenty rows without domains: label x or y, at one of the places, and a note."""
    rows = [f"{name},{'xy'[i % 2]},{places[i // 2 % 2]},n{i}" for i, name in enumerate(IMAGES)]
    return lines(*rows, header="path,label,place,note")


def test_several_columns_make_a_domain(table):
    data = table(grouped("land", "water"), group_by=["label", "place"])
    assert data.names == ("x+land", "x+water", "y+land", "y+water")
    assert data.class_masks().tolist() == [[True, False]] * 2 + [[False, True]] * 2
    assert sorted(grays(data["x+land"].train) + grays(data["x+land"].test)) == [0, 4, 8, 12, 16]
    assert data.notes == ("columns of the manifest that are not used: note",)
    by_place = table(grouped("land", "water"), group_by=["place"])
    assert by_place.names == ("land", "water")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("is no CSV",)),
        (lines(header="path;domain;label"), ("no column path among path;domain;label",)),
        (lines(header="path,label"), ("no column domain", "makes domains of other columns")),
        (lines("images/00.png,a,,"), ("1 of 1 rows lack one of path, domain, label", "line 2")),
        (lines("images/00.png,a,x,Train"), ("Train (line 2)", "train, val, test")),
        (lines("images/00.png,a/b,x,"), ("domain a/b", "without /")),
        (
            lines("images/00.png,a,x,", "./images/00.png,a,y,"),
            ("has already: images/00.png (line 3)",),
        ),
        (b"path,domain,label\nb\xe9.png,a,x\n", ("not UTF-8",)),
    ],
)
def test_a_wrong_table_is_one_line(table, text, words):
    with refused("my manifest.csv", *words):
        table(text)


def test_missing_files_are_named_up_to_ten_and_counted(table):
    gone = [f"gone/{number}.png,a,x," for number in range(13)]
    with refused("13 of 33 rows name no file", "gone/0.png (line 22)", "(13 in all)") as error:
        table(lines(*good(), *gone))
    assert str(error.value).count("gone/") == 10


def test_paths_lead_out_of_the_folder_only_if_allowed(table, tmp_path):
    for path in ("../outside.png", "images/../../outside.png", str(tmp_path / "outside.png")):
        text = lines(*good(), f"{path},a,x,")
        with refused("1 of 21 rows lead out", "(line 22)", "data.outside=true"):
            table(text)
        data = table(text, outside=True)
        assert 99 in grays(data["a"].train) + grays(data["a"].test)


@pytest.mark.parametrize(
    ("splits", "words"),
    [
        (lambda i: "train" if i < 6 else "", "7 of its 10 files have no split"),
        (lambda i: "train", "is in its test split"),
    ],
)
def test_half_given_splits_are_refused(table, splits, words):
    with refused("domain a", words):
        table(lines(*good(splits)))


def test_no_manifest_is_one_line(tmp_path):
    for path in (tmp_path / "gone.csv", tmp_path):
        with refused("data.manifest", "cannot be read"):
            load(tmp_path / "cache", manifest=path)
