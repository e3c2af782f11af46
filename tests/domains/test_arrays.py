"""Arrays that go on after a cut, from marks that outlive it."""

import numpy as np
import pytest

from robustmd.domains import arrays
from robustmd.domains.arrays import MARK, ArrayWriter, open_array

VALUES = np.random.default_rng(0).integers(0, 256, (20, 3, 5), dtype=np.uint8)
ALL_NOTES = [[row, "of four"] for row in range(0, 20, 4)]


class CutError(Exception):
    pass


@pytest.fixture(autouse=True)
def mark_at_every_block(monkeypatch) -> None:
    monkeypatch.setattr(arrays, "MARK_SECONDS", 0.0)


def write(folder, stop=None):
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

    try:
        ArrayWriter(folder).add_resumable("values", "uint8", VALUES.shape, blocks_from, notes)
    except CutError:
        return began[0], None
    assert (open_array(folder / "values.npy") == VALUES).all()
    return began[0], notes


def test_it_goes_on_after_the_last_mark_with_what_was_noted(tmp_path) -> None:
    for stop, begin in ((0, 0), (4, 0), (6, 4), (16, 6)):
        assert write(tmp_path, stop)[0] == begin
    with (tmp_path / "values.npy").open("ab") as file:
        file.write(b"half a row")  # beyond the mark
    assert write(tmp_path) == (16, ALL_NOTES)
    assert write(tmp_path) == (20, ALL_NOTES)


@pytest.mark.parametrize("mark", ["{", "3", '[10, "a", "b"]'])
def test_a_mark_that_cannot_be_read_is_none(tmp_path, mark) -> None:
    write(tmp_path, 10)
    (tmp_path / f"values{MARK}").write_text(mark)
    assert write(tmp_path) == (0, ALL_NOTES)
