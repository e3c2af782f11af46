"""Arrays that go on after a cut: from marks that outlive it, believed only when checked."""

import numpy as np
import pytest

from robustmd.domains import arrays
from robustmd.domains.arrays import MARKS, ArrayWriter, open_array
from robustmd.domains.checksums import array_sha256

VALUES = np.random.default_rng(0).integers(0, 256, (20, 3, 5), dtype=np.uint8)
ALL_NOTES = [[row, "of four"] for row in range(0, 20, 4)]


class CutError(Exception):
    pass


@pytest.fixture(autouse=True)
def mark_at_every_block(monkeypatch) -> None:
    monkeypatch.setattr(arrays, "MARK_SECONDS", 0.0)


def write(folder, stop=None, resumable=True):
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

    writer = ArrayWriter(folder, resumable)
    try:
        writer.add_resumable("values", "uint8", VALUES.shape, blocks_from, notes)
    except CutError:
        return began[0], None
    assert (open_array(folder / "values.npy") == VALUES).all()
    assert writer.states["values"].checksum == array_sha256(VALUES)
    return began[0], notes


def test_it_goes_on_after_the_last_mark_with_what_was_noted(tmp_path) -> None:
    for stop, begin in ((0, 0), (4, 0), (6, 4), (16, 6)):
        assert write(tmp_path, stop)[0] == begin
    assert write(tmp_path) == (16, ALL_NOTES)
    assert write(tmp_path) == (20, ALL_NOTES)
    assert write(tmp_path, resumable=False) == (0, ALL_NOTES)


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
        lambda raw: b"",
        lambda raw: b"other bytes" * 50,
        lambda raw: raw.replace(b"(20, 3, 5)", b"(10, 6, 5)"),
    ],
)
def test_rows_that_are_not_those_of_the_mark_are_made_again(tmp_path, damage) -> None:
    write(tmp_path, 10)
    path = tmp_path / "values.npy"
    path.write_bytes(damage(path.read_bytes()))
    assert write(tmp_path) == (0, ALL_NOTES)


@pytest.mark.parametrize("marks", ["", "{", "[]", '{"values": 3}', '{"values": {"rows": 10}}'])
def test_marks_that_cannot_be_read_are_none(tmp_path, marks) -> None:
    write(tmp_path, 10)
    (tmp_path / MARKS).write_text(marks)
    assert write(tmp_path) == (0, ALL_NOTES)
