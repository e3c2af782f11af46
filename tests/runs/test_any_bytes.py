"""Any bytes in any record file: a record, or a reason why it is none; never another exception."""

import tempfile
from pathlib import Path

import pytest
from conftest import OutputsBuilder
from hypothesis import given
from hypothesis import strategies as st

from robustmd.runs import files
from robustmd.runs.listing import list_runs
from robustmd.runs.reader import collect

RECORDS = (files.CONFIG, files.SUMMARY, files.ENVIRONMENT, files.METRICS, files.LOCK)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CONTENT = (
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", errors="replace"))
    | VALUES.map(lambda value: repr(value).encode("utf-8", errors="replace"))
    | st.sampled_from([b"[" * 100_000, b'{"a":' * 100_000, b"a: &a [*a]", b"!!python/name:os.x {}"])
)


@pytest.mark.parametrize("name", RECORDS)
@given(content=CONTENT)
def test_any_bytes_are_a_record_or_a_reason(name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        outputs = OutputsBuilder(Path(folder))
        path = outputs.run("even", 0)
        sound = outputs.run("even", 1)
        (path / name).write_bytes(content)
        found = collect(outputs.root)
        assert sound.resolve() in [run.path for run in found.runs]
        listed = list_runs(outputs.root)
        assert [one.path for one in listed] == [path.resolve(), sound.resolve()]
        told = [problem.reason for problem in found.problems] + [one.message for one in listed]
        assert not any("\n" in text for text in told)
