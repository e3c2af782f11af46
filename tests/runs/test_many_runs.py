"""A thousand runs: every file is read once, so that time grows with their number and no faster."""

from collections import Counter
from pathlib import Path

import pytest

from robustmd.runs import untrusted
from robustmd.runs.reader import collect


@pytest.fixture
def reads(monkeypatch):
    """How often each file was read."""
    counts: Counter[Path] = Counter()
    read_text = untrusted.read_text

    def counted(path):
        counts[path] += 1
        return read_text(path)

    monkeypatch.setattr(untrusted, "read_text", counted)
    return counts


def fill(outputs, runs, measurements):
    """`runs` runs of two domains, in configurations of five seeds."""
    curve = [{"a": 2.0 - i / measurements, "b": 1.0} for i in range(measurements - 1)]
    for i in range(runs):
        folder, lam = f"{i // 5:08d}", {"lam": 0.5 + i // 5}
        outputs.run("opt", i % 5, curve=curve, settings=lam, folder=folder, iterations=1000)


def test_every_file_is_read_once(outputs, reads):
    fill(outputs, 20, 5)
    found = collect(outputs.root)
    for run in found.runs:
        assert len(run.history["train"].iterations) == 5  # without reading again
    assert len(found.runs) == 20
    assert set(reads.values()) == {1}
    assert Counter(path.name for path in reads) == dict.fromkeys(
        ("config.yaml", "summary.json", "environment.json", "metrics.csv"), 20
    )


@pytest.mark.slow
def test_a_thousand_runs_of_fifty_measurements(outputs):
    fill(outputs, 1000, 50)
    found = collect(outputs.root)
    assert len(found.runs) == 1000
    assert found.problems == ()
    assert {len(run.history["test"].iterations) for run in found.runs} == {50}
