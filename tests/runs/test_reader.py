"""collect(): finds every sound run, names everything else with a reason, and never gives up."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from robustmd.errors import UserError
from robustmd.runs import untrusted
from robustmd.runs.reader import collect


def only_problem(outputs):
    found = collect(outputs.root)
    assert len(found.problems) == 1
    return found, found.problems[0]


def change(path: Path, **values):
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), "utf-8")


def test_a_run_is_read_whole(outputs):
    path = outputs.run(
        "opt",
        3,
        train={"a": (0.5, 80.0), "b": (0.25, 90.0)},
        test={"a": (0.7, 88.0), "b": (0.9, 75.0)},
        settings={"lam": 0.1},
        curve=[{"a": 2.0, "b": 3.0}, {"a": 1.0, "b": 0.5}],
    )
    found = collect(outputs.root)
    assert found.problems == ()
    (run,) = found.runs
    assert (run.path, run.data, run.method, run.seed) == (path.resolve(), "toy", "opt", 3)
    assert (run.status, run.domains, run.label, run.lam) == ("finished", ("a", "b"), "opt", 0.1)
    assert run.loss("train", "b") == 0.25
    assert run.accuracy("test", "b") == 75.0
    assert (run.worst("loss", "train"), run.worst("accuracy", "train")) == (0.5, 80.0)
    assert (run.worst("loss", "test"), run.worst("accuracy", "test")) == (0.9, 75.0)
    assert run.final["train"]["a"].examples == 40


def test_the_label_of_an_individual_model_names_its_domain(outputs):
    outputs.run("individual", 0, settings={"domain": "b"}, folder="1")
    outputs.run("individual", 0, settings={"domain": 0}, folder="2")
    runs = collect(outputs.root).runs
    assert [run.label for run in runs] == ["individual b", "individual a"]


@pytest.mark.parametrize("status", ["running", "failed", "interrupted", "diverged"])
def test_an_unfinished_run_is_named_with_its_status(outputs, status):
    values = {"status": status, "iterations_done": 40, "message": "because"}
    outputs.run(extra=values)
    found, problem = only_problem(outputs)
    assert found.runs == ()
    assert problem.status == status
    assert problem.reason == f"{status} after 40 of 100 iterations: because"
    assert problem.run is not None


GARBLED = "metrics.csv cannot be read: line 3 is not a row of iteration,"
LACKS = "metrics.csv lacks the final measurement (iteration 100) of test on b"


@pytest.mark.parametrize(
    ("pattern", "row", "reason"),
    [(r".*,test,b,.*\n", "", LACKS), (r"^(.*\n.*\n)", r"\g<1>100,10.0,tra\n", GARBLED)],
)
def test_a_lost_or_garbled_row_leaves_the_run_out(outputs, pattern, row, reason):
    path = outputs.run() / "metrics.csv"
    path.write_text(re.sub(pattern, row, path.read_text("utf-8"), count=1), "utf-8")
    found, problem = only_problem(outputs)
    assert found.runs == ()
    assert problem.reason.startswith(reason)


def test_many_unsound_rows_are_one_line_and_a_count(outputs):
    path = outputs.run() / "metrics.csv"
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(f"{-i},0,train,a,0.5,50,20\n" for i in range(1, 30_001))
    found, problem = only_problem(outputs)
    assert len(found.runs) == 1
    assert "train at iteration -30000 (the first of 30,000 such iterations)" in problem.reason


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("summary.json", None, "summary.json is missing"),
        (
            "summary.json",
            '{"status": "fini',
            "summary.json cannot be read: Unterminated string starting at: line 1",
        ),
        ("summary.json", "[1]", "summary.json cannot be read: it holds no mapping"),
        ("summary.json", "[" * 100_000, "summary.json cannot be read: maximum recursion depth"),
        ("config.yaml", None, "config.yaml is missing"),
        ("config.yaml", "a: [1", "config.yaml cannot be read: while parsing a flow sequence"),
        ("config.yaml", "[" * 100_000, "config.yaml cannot be read: "),
        (
            "config.yaml",
            "a: &a [1]\nb: [*a, *a]",
            "config.yaml cannot be read: it has YAML aliases",
        ),
        (
            "config.yaml",
            "!!python/object/apply:os.system [exit]",
            "config.yaml cannot be read: could not determine",
        ),
        ("config.yaml", "seed: 0", "config.yaml has no data.name"),
        ("metrics.csv", None, "metrics.csv is missing"),
        ("metrics.csv", "", "metrics.csv cannot be read: it has no column iteration"),
        ("metrics.csv", b"\xff\xfe", "metrics.csv cannot be read: 'utf-8' codec can't decode"),
    ],
)
def test_a_damaged_file_leaves_the_run_out_with_a_reason(outputs, name, content, reason):
    sound = outputs.run(seed=1)
    path = outputs.run(seed=0) / name
    path.unlink()
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found, problem = only_problem(outputs)
    assert problem.reason.startswith(reason)
    assert [run.path for run in found.runs] == [sound.resolve()]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"seed": 7}, "config.yaml says seed=0, summary.json 7"),
        ({"data": "other"}, "config.yaml says data=toy, summary.json 'other'"),
        ({"domains": ["a"]}, "metrics.csv measures 'b' at iteration 100, which"),
        ({"domains": ["a", "b", "c"]}, "metrics.csv lacks the final measurement"),
        ({"domains": ["a", "a"]}, "summary.json has no list of distinct domains"),
        ({"iterations": 200}, "metrics.csv lacks the final measurement (iteration 200)"),
        ({"iterations": "many"}, "summary.json names no number of iterations"),
        ({"status": 1}, "summary.json names no status"),
    ],
)
def test_files_that_disagree_leave_the_run_out(outputs, values, reason):
    change(outputs.run() / "summary.json", **values)
    found, problem = only_problem(outputs)
    assert found.runs == ()
    assert problem.reason.startswith(reason)


@pytest.mark.parametrize("value", [(float("nan"), 80.0), (-1.0, 80.0)])
def test_a_final_loss_that_cannot_be_leaves_the_run_out(outputs, value):
    outputs.run(train={"a": value, "b": (0.2, 90.0)})
    _, problem = only_problem(outputs)
    assert problem.reason.startswith("metrics.csv: the final measurement of train on a is twice")


def test_what_leaves_nothing_out_is_a_remark(outputs):
    path = outputs.run()
    change(path / "summary.json", method="a&b_<i>")
    (path / "environment.json").unlink()
    found = collect(outputs.root)
    assert [run.method for run in found.runs] == ["even"]
    assert [problem.scope for problem in found.problems] == ["remark", "remark"]


def test_foreign_things_are_named_once_or_ignored(outputs):
    run = outputs.run()
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / "last.pt").write_bytes(b"\0")
    (outputs.root / "multirun.yaml").write_text("hydra: {}", "utf-8")
    (outputs.root / "config.yaml").write_text("stray: true", "utf-8")
    (outputs.root / "empty" / "deep").mkdir(parents=True)
    (outputs.root / ".hydra").mkdir()
    (outputs.root / ".hydra" / "config.yaml").write_text("seed: 0", "utf-8")
    (outputs.root / "stray" / "a").mkdir(parents=True)
    (outputs.root / "stray" / "a" / "notes.txt").write_text("hello", "utf-8")
    found, problem = only_problem(outputs)
    assert [r.path for r in found.runs] == [run.resolve()]
    assert (problem.path.name, problem.scope) == ("stray", "directory")


def test_symbolic_links_are_not_followed(outputs, tmp_path):
    run = outputs.run()
    (outputs.root / "loop").symlink_to(outputs.root, target_is_directory=True)
    (outputs.root / "self").symlink_to(outputs.root / "self")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (run / "metrics.csv").rename(elsewhere / "metrics.csv")
    (run / "metrics.csv").symlink_to(elsewhere / "metrics.csv")
    found = collect(outputs.root)
    assert found.runs == ()
    assert [p.reason for p in found.problems] == [
        "a symbolic link: not followed",
        "metrics.csv cannot be read: is reached by a symbolic link: not followed",
    ]


def test_no_folder_is_a_users_mistake(tmp_path):
    (tmp_path / "file").write_text("")
    for name in ("none", "file"):
        with pytest.raises(UserError, match="no such folder"):
            collect(tmp_path / name)


def test_splits_beyond_train_and_test_are_read_too(outputs):
    path = outputs.run() / "metrics.csv"
    more = "100,10.0,train_averaged,a,0.4,81.0,40\n100,10.0,train_averaged,b,0.3,91.0,40\n"
    path.write_text(path.read_text("utf-8") + more, "utf-8")
    found = collect(outputs.root)
    assert found.problems == ()
    assert found.runs[0].accuracy("train_averaged", "b") == 91.0


def test_every_file_is_read_once(outputs, monkeypatch):
    """So that time grows with the number of runs and no faster."""
    for seed in range(20):
        outputs.run("opt", seed, curve=[{"a": 2.0, "b": 1.0}] * 4)
    reads, read_bytes = Counter(), untrusted.read_bytes

    def counted(path):
        reads[path] += 1
        return read_bytes(path)

    monkeypatch.setattr(untrusted, "read_bytes", counted)
    found = collect(outputs.root)
    assert {len(run.history["train"].iterations) for run in found.runs} == {5}
    assert set(reads.values()) == {1}
    assert Counter(path.name for path in reads) == dict.fromkeys(
        ("config.yaml", "summary.json", "environment.json", "metrics.csv"), 20
    )
