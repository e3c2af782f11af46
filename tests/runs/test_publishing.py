"""Published records: what a report reads of finished runs, packed, and bounded when unpacked."""

import gzip

import pytest

from robustmd import cli
from robustmd.report.write import write_report
from robustmd.runs.reader import collect


@pytest.fixture
def published(outputs, tmp_path):
    for seed in range(3):
        for method in ("even", "opt"):
            path = outputs.run(method, seed, curve=[{"a": 2.0, "b": 3.0}, {"a": 1.0, "b": 0.5}])
            (path / "checkpoints").mkdir(exist_ok=True)
            (path / "checkpoints" / "final.pt").write_bytes(b"weights")
    outputs.run("opt", 3, extra={"status": "failed", "message": "no"}, folder="failed")
    to = tmp_path / "published"
    assert cli.main(["runs", str(outputs.root), "--publish", str(to)]) == 0
    return to


def test_the_records_alone_give_the_same_tables(outputs, published, tmp_path):
    whole, found = collect(outputs.root).runs, collect(published)
    assert found.problems == ()
    assert [run.place for run in found.runs] == [run.place for run in whole]
    kept = {path.name for path in published.rglob("*") if path.is_file()}
    assert kept == {"runs.jsonl.gz", "metrics.csv.gz", "weights.csv.gz"}
    pages = [
        write_report(root, tmp_path / "report" / root.name, draw=False)
        for root in (outputs.root, published)
    ]
    texts = [
        (tmp_path / "report" / root.name / "toy" / "table.csv").read_text()
        for root in (outputs.root, published)
    ]
    assert texts[0] == texts[1]
    assert pages[1].sections[0].csv["paired.csv"].equals(pages[0].sections[0].csv["paired.csv"])


def test_the_machines_folders_are_not_published(outputs, tmp_path):
    run = outputs.run("even")
    with (run / "config.yaml").open("a") as config:
        config.write("paths:\n  data: /home/me/data\n  outputs: /home/me/outputs\n")
    (run / "environment.json").write_text(
        '{"folder": "/home/me", "threads": 1, "overrides": ["paths.data=/home/me"]}'
    )
    assert cli.main(["runs", str(outputs.root), "--publish", str(tmp_path / "published")]) == 0
    records = gzip.decompress((tmp_path / "published" / "runs.jsonl.gz").read_bytes())
    assert b"/home/me" not in records
    assert len(collect(tmp_path / "published").runs) == 1


def test_copies_below_the_outputs_are_not_counted_again(outputs):
    outputs.run("even")
    assert cli.main(["runs", str(outputs.root), "--publish", str(outputs.root / "published")]) == 0
    assert len(collect(outputs.root).runs) == 1
    assert len(collect(outputs.root / "published").runs) == 1


def test_they_are_the_same_bytes_whenever_they_are_made(outputs, published, capsys):
    before = {path: path.read_bytes() for path in published.rglob("*.*") if path.is_file()}
    assert cli.main(["runs", str(outputs.root), "--publish", str(published)]) == 0
    assert {path: path.read_bytes() for path in before} == before
    assert "records of 6 finished runs, 0.0" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["runs.jsonl.gz", "metrics.csv.gz"])
@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (b"no gzip at all", "cannot be read: Not a gzipped file"),
        (gzip.compress(b"iteration,", mtime=0)[:-9], "cannot be read: Compressed"),
        (gzip.compress(bytes(2**20), mtime=0), "unpacks to more than 65536 bytes"),
        (gzip.compress(b"iteration,loss", mtime=0), "cannot be read: "),
        (gzip.compress(b'{"run": "../x", "records": {}}', mtime=0), "cannot be read: "),
        (gzip.compress(b'{"run": "a\\nb", "records": {}}', mtime=0), "cannot be read: "),
    ],
)
def test_what_does_not_unpack_is_a_problem_and_no_more_is_unpacked_than_allowed(
    published, monkeypatch, packed, words, name
):
    monkeypatch.setattr("robustmd.runs.published.LARGEST", 2**16)
    (published / name).write_bytes(packed)
    found = collect(published)
    assert found.runs == ()
    assert words in found.problems[0].reason


def test_without_a_finished_run_there_is_nothing_to_publish(outputs, tmp_path, capsys):
    outputs.run("opt", 3, extra={"status": "failed", "message": "no"})
    assert cli.main(["runs", str(outputs.root), "--publish", str(tmp_path / "to")]) == 2
    assert "no finished run" in capsys.readouterr().err
    assert not (tmp_path / "to").exists()
