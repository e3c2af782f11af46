"""`robustmd runs`: what is listed, which commands are printed, and what may be removed."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from robustmd import cli
from robustmd.errors import UserError
from robustmd.runs import lock
from robustmd.runs.listing import list_runs, remove


def said(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> list[str]:
    assert cli.main(["runs", *map(str, arguments)]) == code
    return capsys.readouterr().out.splitlines()


def test_a_line_for_every_run_with_what_differs(outputs, capsys) -> None:
    outputs.run("opt", 0, settings={"lam": 0.1}, folder="1")
    outputs.run("opt", 1, settings={"lam": 1}, folder="2")
    outputs.run("even", 0, training={"learning_rate": 0.5}, folder="3")
    head, *lines, total = said(capsys, outputs.root)
    assert head.split() == ["run", "status", "iterations", "worst", "loss", "age", "differs", "in"]
    assert lines[0].split()[:4] == ["toy/even/3/seed=0", "finished", "100/100", "0.5000"]
    assert lines[0].endswith("learning_rate=0.5")
    assert lines[1].endswith("lam=0.1 learning_rate=0.03")
    assert lines[2].endswith("lam=1 learning_rate=0.03")
    assert total == "3 runs: 3 finished"


def test_a_constant_prediction_is_said_below_its_finished_run(outputs, capsys) -> None:
    outputs.run(seed=0)
    outputs.run(seed=1, constant=["a", "b"])
    _, _, warned, warning, _ = said(capsys, outputs.root)
    assert "seed=1" in warned
    assert warning == "    predicts one class for all images of test: a, b"


@pytest.mark.parametrize("status", ["failed", "interrupted", "diverged"])
def test_failed_lists_what_did_not_finish_and_why(outputs, capsys, status: str) -> None:
    outputs.run(seed=0)
    outputs.run(seed=1, extra={"status": status, "iterations_done": 40, "message": "because"})
    _, line, reason, total = said(capsys, outputs.root, "--failed")
    assert line.split()[:3] == ["toy/even/00000000/seed=1", status, "40/100"]
    assert reason.strip() == "because"
    assert total == f"2 runs: 1 finished, 1 {status}"


def test_running_is_what_holds_its_lock(outputs) -> None:
    path = outputs.run(extra={"status": "running"})
    (found,) = list_runs(outputs.root)
    assert (found.status, found.is_over) == ("cut off", False)
    with lock.held(path):
        (found,) = list_runs(outputs.root)
        assert (found.status, found.is_over) == ("running", True)
        assert found.message.startswith(f"process {os.getpid()} on")


def test_the_loss_of_an_unfinished_run_is_of_its_last_whole_measurement(outputs) -> None:
    curve = [{"a": 4.0, "b": 5.0}, {"a": 2.0, "b": 3.0}]
    path = outputs.run(curve=curve, extra={"status": "running"}) / "metrics.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-3]))  # the last measurement lacks domain b
    assert list_runs(outputs.root)[0].worst_loss == 3.0


def test_the_worst_loss_is_no_number_where_one_is_none(outputs) -> None:
    outputs.run(train={"a": (math.nan, 0), "b": (2, 0)}, extra={"status": "diverged"})
    (one,) = list_runs(outputs.root)
    assert one.worst_loss is not None
    assert math.isnan(one.worst_loss)


def test_age_counts_from_the_last_change_and_is_never_negative(outputs) -> None:
    path = outputs.run()
    for file in path.iterdir():
        os.utime(file, (time.time() - 7200,) * 2)
    assert 7190 < list_runs(outputs.root)[0].age < 7300
    os.utime(path / "metrics.csv", (time.time() + 9999,) * 2)
    assert list_runs(outputs.root)[0].age == 0


def test_what_could_steer_a_terminal_is_written_out(outputs, capsys) -> None:
    failed = {"status": "failed", "message": "\x1b[31mred\nline"}
    outputs.run(extra=failed, settings={"cost": "\x07"}, folder="\x1b]0;x\x07")
    outputs.run(extra=failed, settings={"cost": "a\u202eb"}, folder="c\u200b")
    lines = said(capsys, outputs.root)
    assert all(line.isprintable() for line in lines)
    for shown in (r"\x1b[31mred\nline", r"\x1b]0;x\x07/seed=0", r"a\u202eb", r"c\u200b/seed=0"):
        assert any(shown in line for line in lines)


def test_commands_go_on_with_the_runs_where_they_are(outputs, capsys) -> None:
    outputs.run("opt", 3, extra={"status": "failed"})
    outputs.run("even", 0)
    (line,) = said(capsys, outputs.root, "--failed", "--rerun-command")
    root = outputs.root.resolve()
    assert line == f"robustmd train method=opt data=toy seed=3 paths.outputs={root}"


def test_a_record_that_would_run_code_is_left_out_and_the_others_are_not(outputs, capsys) -> None:
    stopped = {"status": "interrupted"}
    path = outputs.run("opt", 0, extra=stopped)
    outputs.run("opt", 1, extra=stopped)
    record = json.loads((path / "environment.json").read_text("utf-8"))
    record["overrides"].append("+hydra.callbacks.x={_target_: os.abort}")
    (path / "environment.json").write_text(json.dumps(record), "utf-8")
    assert cli.main(["runs", str(outputs.root), "--failed", "--rerun-command"]) == 1
    printed = capsys.readouterr()
    (command,), (complaint,) = printed.out.splitlines(), printed.err.splitlines()
    assert "seed=1" in command
    assert f"{path}: left out: +hydra.callbacks.x=" in complaint


def test_clean_removes_the_unfinished_alone_and_what_they_leave_empty(outputs, capsys) -> None:
    kept = outputs.run("even", 0)
    outputs.run("even", 1, extra={"status": "failed"})
    gone = outputs.run("opt", 0, extra={"status": "interrupted"})
    (gone / "checkpoints").mkdir()
    (gone / "checkpoints" / "iteration-00000005.pt").write_bytes(b"x")
    (gone / ".summary.json.abcd1234").write_bytes(b"")
    *_, last = said(capsys, outputs.root, "--clean", "--yes")
    assert last == "2 runs removed"
    assert [path.name for path in (outputs.root / "toy").iterdir()] == ["even"]
    assert list((outputs.root / "toy" / "even" / "00000000").iterdir()) == [kept]
    assert said(capsys, outputs.root, "--clean") == ["nothing to remove: no unfinished runs"]


def test_clean_asks_where_somebody_can_answer(outputs, capsys, monkeypatch) -> None:
    path = outputs.run(extra={"status": "failed"})
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert cli.main(["runs", str(outputs.root), "--clean"]) == 2
    assert "add --yes" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: "")
    assert said(capsys, outputs.root, "--clean")[-1] == "nothing removed"
    assert path.exists()
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert said(capsys, outputs.root, "--clean")[-1] == "1 runs removed"
    assert not path.exists()


def refuses(path: Path, root: Path, words: str) -> None:
    with pytest.raises(UserError, match=words):
        remove(path, root)
    assert path.exists()


def test_nothing_but_an_unfinished_run_is_ever_removed(outputs, tmp_path: Path) -> None:
    root = outputs.root.resolve()
    refuses(outputs.run(seed=0), root, "has finished")
    foreign = outputs.run(seed=1, extra={"status": "failed"})
    (foreign / "thesis.txt").write_text("years of work")
    refuses(foreign, root, "holds thesis.txt, which no run of ours has")
    held = outputs.run(seed=2, extra={"status": "failed"})
    with lock.held(held):
        refuses(held, root, "is at work on this run")
    unknown = outputs.run(seed=3)
    (unknown / "summary.json").write_text("{")
    (unknown / "checkpoints").mkdir()
    (unknown / "checkpoints" / "final.pt").write_bytes(b"")
    refuses(unknown, root, "has finished, or may have")
    other = outputs.run("opt", extra={"status": "failed"})
    other.rename(other.parent / "mine")
    refuses(other.parent / "mine", root, "has a name that no run of ours has")
    refuses(root, root, "symbolic link")


def test_links_are_neither_followed_nor_removed(outputs, tmp_path: Path, capsys) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    run = outputs.run(extra={"status": "failed"})
    (run / "checkpoints").symlink_to(elsewhere, target_is_directory=True)
    moved = tmp_path / "moved"
    run.parent.rename(moved)
    (outputs.root / "toy" / "even" / "00000000").symlink_to(moved, target_is_directory=True)
    said(capsys, outputs.root, "--clean", "--yes")
    assert (moved / "seed=0" / "summary.json").exists()
    refuses(outputs.root.resolve() / "toy/even/00000000/seed=0", outputs.root.resolve(), "symbolic")
    remove((moved / "seed=0").resolve(), moved.resolve())
    assert (elsewhere / "precious").exists()


def test_listing_is_light() -> None:
    code = (
        "import sys\nfrom robustmd.cli import main\nmain(['runs', '.'])\n"
        "print({'torch', 'hydra', 'omegaconf', 'pandas', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_no_folder_and_no_runs(tmp_path: Path, capsys) -> None:
    assert cli.main(["runs", str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err
    assert said(capsys, tmp_path) == [f"{tmp_path}: no runs in it"]


def test_damaged_files_are_unreadable_not_fatal(outputs) -> None:
    path = outputs.run()
    (path / "config.yaml").unlink()
    summary = json.loads((path / "summary.json").read_text())
    (path / "summary.json").write_text(json.dumps(summary | {"domains": 5, "iterations": "x"}))
    (found,) = list_runs(outputs.root)
    assert (found.status, found.message) == ("unreadable", "config.yaml is missing")
    assert found.total is None


def test_without_its_measurements_or_with_one_twice_no_run_is_finished(outputs) -> None:
    path = outputs.run() / "metrics.csv"
    path.write_text(path.read_text() + path.read_text().splitlines(keepends=True)[-1])
    (found,) = list_runs(outputs.root)
    assert found.status == "unreadable"
    assert "the final measurement of test on b is twice there" in found.message
    path.unlink()
    (found,) = list_runs(outputs.root)
    assert (found.status, found.message) == ("unreadable", "metrics.csv is missing")
