"""What is not there, and a command that would run it; with what it cost so far."""

import json
import shlex

import pytest

from robustmd.report.tables import command_for
from robustmd.runs.records import read_records


@pytest.fixture
def reported(written):
    """(the first table's report, all of it)."""

    def made():
        result = written()
        return result.sections[0], result

    return made


def missing(section):
    """(row, seeds, reason, command) of each gap."""
    return [*section.missing.shown.itertuples(index=False, name=None)]


def environment(path, **values):
    file = path / "environment.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


def test_seeds_that_a_row_lacks_come_with_their_command(outputs, reported):
    for seed in (0, 1, 2):
        outputs.run("even", seed)
    outputs.run("opt", 1)
    section, _ = reported()
    assert missing(section) == [
        ("opt", "0, 2", "not run", "robustmd train -m method=opt data=toy seed=0,2")
    ]


def test_unfinished_runs_go_on_by_their_own_command(outputs, reported):
    outputs.run("even", 0)
    stopped = {"status": "interrupted", "iterations_done": 40}
    outputs.run("even", 1, extra=stopped)
    path = outputs.run("opt", 0, settings={"lam": 9.0}, extra=stopped)
    environment(path, overrides=["method=opt", "data=toy", "method.lam=9", "seed=0"])
    outputs.run("opt", 0, settings={"lam": 1.0}, folder="1")
    outputs.run("opt", 1, settings={"lam": 1.0}, folder="1")
    section, _ = reported()
    found = [(label, seeds, command) for label, seeds, _, command in missing(section)]
    assert found == [
        ("even", "1", "robustmd train method=even data=toy seed=1"),
        ("opt λ=9", "0", "robustmd train method=opt data=toy method.lam=9 seed=0"),
    ]


def test_a_broken_summary_is_missing_too_and_is_told_from_its_folder(outputs, reported):
    for seed in (0, 1):
        outputs.run("even", seed)
    cut = outputs.root / "toy" / "even" / "00000000" / "seed=1" / "summary.json"
    cut.write_text(cut.read_text("utf-8")[:50], "utf-8")
    section, _ = reported()
    ((label, seeds, reason, _),) = missing(section)
    assert (label, seeds) == ("even", "1")
    assert reason.startswith("summary.json cannot be read: ")
    entries = section.entries.shown
    (entry,) = entries[entries["why"] != ""].itertuples()
    assert (outputs.root / entry.files, entry.seed, entry.run) == (cut.parent, "1", "even")


def test_a_finished_run_with_broken_numbers_has_to_be_forced(outputs, reported):
    outputs.run("even", 0)
    path = outputs.run("even", 1) / "metrics.csv"
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
    section, _ = reported()
    assert missing(section)[0][-1].endswith("seed=1 force=true")


def test_without_recorded_overrides_every_setting_is_named_and_composes(outputs):
    from robustmd.config.check import make_config
    from robustmd.config.identity import number_changing

    overrides = ["method=ot", "data=digits_mini", "method.prior=[0.25,0.75]", "method.lam=0.5"]
    config = make_config(overrides).model_dump()
    path = outputs.run("ot")
    environment(path, overrides=None)
    run = read_records(outputs.root).runs.iloc[0]
    run["config"].clear()
    run["config"].update(config)
    program, command, *made = shlex.split(command_for(run, (7,)))
    assert (program, command, made[-1]) == ("robustmd", "train", "seed=7")
    again = make_config(made).model_dump()
    assert number_changing(again) == number_changing(config)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("/a b", "paths.data='/a b'"),
        ("/plain/path", "paths.data=/plain/path"),
        ('/it\'s "so"', "paths.data='/it\\'s \"so\"'"),
    ],
)
def test_paths_are_quoted_for_hydra_and_the_shell(outputs, value, text):
    path = outputs.run("even")
    environment(path, overrides=None)
    run = read_records(outputs.root).runs.iloc[0]
    run["config"]["paths"] = {"data": value, "cache": None}
    words = shlex.split(command_for(run, (0,)))
    assert text in words
    assert not any(word.startswith("paths.cache") for word in words)


def test_compute_counts_failed_and_unfinished_runs_by_device(outputs, reported):
    spent = {"training": 10.0, "adversary": 1.0, "data": 2.0, "measurement": 3.0}
    outputs.run("even", 0, extra={"seconds": {**spent, "total": 20.0}})
    outputs.run("even", 1, extra={"seconds": {**spent, "total": 22.0}})
    failed = outputs.run("even", 2, extra={"status": "failed", "seconds": spent})
    environment(failed, device="Some GPU")
    outputs.run("opt", 0, extra={"status": "failed", "seconds": {"total": 5.0, "data": "x"}})
    outputs.run("opt", 1, extra={"seconds": None})
    section, result = reported()
    raw = section.csv["compute.csv"]
    assert [*raw[[*raw][:5]].itertuples(index=False, name=None)] == [
        ("even", "cpu", 2, 0, 42.0),
        ("opt", "cpu", 1, 1, 5.0),
        ("even", "Some GPU", 0, 1, 15.0),  # no total: its parts, of which training has adversary
    ]
    assert [*raw["complete"]] == ["yes", "no", "no"]
    page = result.page.read_text("utf-8")
    assert "| opt | cpu | 1 | 1 | ≥ 5.0 |" in page


def test_every_run_directory_is_an_entry(outputs, reported):
    outputs.run("even", 0)
    for folder, lam in (("1", 0.1), ("2", 1.0)):
        outputs.run("opt", 0, settings={"lam": lam}, folder=folder)
    outputs.run("opt", 1, settings={"lam": 1.0}, folder="2", extra={"status": "diverged"})
    outputs.run("even", 0, folder="twice")
    outputs.run("even", 0, data="other", extra={"status": "failed"})
    section, result = reported()
    found = {
        (e.files, e.status, e.why.partition(" ")[0]) for e in section.entries.shown.itertuples()
    }
    assert found == {
        ("toy/even/00000000/seed=0", "finished", ""),
        ("toy/opt/1/seed=0", "finished", ""),
        ("toy/opt/2/seed=0", "finished", ""),
        ("toy/opt/2/seed=1", "diverged", "diverged"),
        ("toy/even/twice/seed=0", "finished", "same"),
    }
    assert "other/even/00000000/seed=0" in result.html.read_text("utf-8")  # of no table


def test_where_a_record_makes_no_command_the_reason_stands_in_its_place(outputs, reported):
    outputs.run("even", 0)
    path = outputs.run("even", 1, extra={"status": "failed"})
    hostile = "+hydra.callbacks.x={_target_: pandas.read_pickle, filepath_or_buffer: p.pkl}"
    environment(path, overrides=["method=even", "data=toy", hostile])
    section, result = reported()
    (gap,) = missing(section)
    assert gap[-1].startswith("not known: +hydra.callbacks.x=")
    for page in (result.page, result.html):
        assert "robustmd train method=even" not in page.read_text("utf-8")
