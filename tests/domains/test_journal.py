"""How far a preparation has come: marks that outlive a cut, and are believed only when checked."""

import numpy as np
import pytest

from robustmd.domains import arrays
from robustmd.domains.arrays import ArrayWriter, open_array
from robustmd.domains.checksums import array_sha256
from robustmd.domains.journal import FILE, Journal, Mark

SOURCES = {"listing": "0123"}
VALUES = np.random.default_rng(0).integers(0, 256, (20, 3, 5), dtype=np.uint8)


class CutError(Exception):
    pass


@pytest.fixture(autouse=True)
def mark_at_every_block(monkeypatch) -> None:
    monkeypatch.setattr(arrays, "MARK_SECONDS", 0.0)


def write(folder, stop=None, sources=SOURCES):
    """Write VALUES two rows at a time, cut off at row `stop`; returns (first row made, notes)."""
    notes, began = [], []

    def blocks_from(row):
        began.append(row)
        for start in range(row, len(VALUES), 2):
            if stop is not None and start >= stop:
                raise CutError
            if start % 4 == 0:
                notes.append([start, "of four"])
            yield VALUES[start : start + 2]

    writer = ArrayWriter(folder, Journal(folder, sources))
    try:
        writer.add_resumable("values", "uint8", VALUES.shape, blocks_from, notes)
    except CutError:
        return began[0], None
    assert (open_array(folder / "values.npy") == VALUES).all()
    assert writer.states["values"].checksum == array_sha256(VALUES)
    return began[0], notes


ALL_NOTES = [[row, "of four"] for row in range(0, 20, 4)]


@pytest.mark.parametrize("stop", [0, 2, 10, 18])
def test_it_goes_on_after_the_last_mark_with_what_was_noted(tmp_path, stop) -> None:
    write(tmp_path, stop)
    assert write(tmp_path) == (stop, ALL_NOTES)


def test_several_cuts_and_a_whole_array(tmp_path) -> None:
    for stop, begin in ((4, 0), (6, 4), (16, 6)):
        assert write(tmp_path, stop)[0] == begin
    assert write(tmp_path) == (16, ALL_NOTES)
    assert write(tmp_path) == (20, ALL_NOTES)


def test_rows_beyond_the_mark_are_cut_off(tmp_path) -> None:
    write(tmp_path, 10)
    with (tmp_path / "values.npy").open("ab") as file:
        file.write(b"half a row")
    assert write(tmp_path) == (10, ALL_NOTES)


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-1],
        lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
        lambda raw: raw[:140] + bytes(len(raw) - 140),
        lambda raw: raw[:50],
        lambda raw: b"",
        lambda raw: b"other bytes" * 50,
        lambda raw: raw.replace(b"(20, 3, 5)", b"(20, 5, 3)"),
        lambda raw: raw.replace(b"(20, 3, 5)", b"(10, 6, 5)"),
    ],
)
def test_rows_that_are_not_those_of_the_mark_are_made_again(tmp_path, damage) -> None:
    write(tmp_path, 10)
    path = tmp_path / "values.npy"
    path.write_bytes(damage(path.read_bytes()))
    assert write(tmp_path) == (0, ALL_NOTES)
    assert write(tmp_path) == (20, ALL_NOTES)


def test_a_journal_of_other_sources_holds_no_mark(tmp_path) -> None:
    write(tmp_path, 10)
    assert write(tmp_path, sources={"listing": "4567"}) == (0, ALL_NOTES)


@pytest.mark.parametrize("end", [b'{"array": "val', b"\xff\x00\n", b"[]\n", b'{"array": 1}\n'])
def test_a_line_that_is_none_ends_the_journal(tmp_path, end) -> None:
    write(tmp_path, 10)
    later = Mark(12, "ab", []).__dict__
    with (tmp_path / FILE).open("ab") as file:
        file.write(end + b"\n" + str(later).encode())
    assert write(tmp_path) == (10, ALL_NOTES)


def test_without_a_journal_everything_is_written(tmp_path) -> None:
    asked = []
    writer = ArrayWriter(tmp_path)
    writer.add_resumable(
        "values", "uint8", VALUES.shape, lambda row: [asked.append(row), VALUES][1:], []
    )
    assert asked == [0]
    assert writer.states["values"].checksum == array_sha256(VALUES)


def test_marks_of_arrays_are_kept_apart(tmp_path) -> None:
    journal = Journal(tmp_path, SOURCES)
    assert journal.is_new
    journal.add("a", Mark(3, "aa", ["x"]))
    journal.add("b", Mark(5, "bb", []))
    journal.add("a", Mark(4, "ab", ["y"]))
    again = Journal(tmp_path, SOURCES)
    assert again.mark("a") == Mark(4, "ab", ["x", "y"])
    assert again.mark("b") == Mark(5, "bb", [])
    assert again.mark("c") is None
    again.add("a", Mark(0, "", []))
    assert again.mark("a") is None
