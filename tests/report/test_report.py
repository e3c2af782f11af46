"""The whole report: what it says about damage, warnings and cost, and that it stays light."""

import csv
import hashlib
import io
import math
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from conftest import summary_text

from robustmd.cli import main
from robustmd.errors import UserError
from robustmd.report.report import write_report

GOLDEN = Path(__file__).parent / "golden"
RUNS = GOLDEN / "runs"


@pytest.mark.usefixtures("tables_only")
def test_damage_is_listed_and_the_rest_is_right(outputs, tmp_path):
    for seed in range(4):
        outputs.run("even", seed, test={"a": (0.5, 80.0 + seed), "b": (0.5, 99.0)})
    outputs.run("a&b_<i>", 0)
    cut = outputs.root / "toy" / "even" / "00000000" / "seed=3" / "summary.json"
    cut.write_text(cut.read_text("utf-8")[:100], "utf-8")
    rows = outputs.root / "toy" / "even" / "00000000" / "seed=2" / "metrics.csv"
    rows.write_text("".join(rows.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
    (outputs.root / "stray").mkdir()
    (outputs.root / "stray" / "x").write_text("", "utf-8")
    (outputs.root / "multirun.yaml").write_text("hydra: {}", "utf-8")
    (outputs.root / "loop").symlink_to(outputs.root)
    result = write_report(outputs.root, tmp_path / "report")
    page = result.page.read_text("utf-8")
    (section,) = result.sections
    even = section.table.rows[0]
    assert (even.label, even.seeds) == ("even", (0, 1))
    assert "80.50 ± 0.71" in page
    assert [line.partition(" in it: ")[0] for line in even.warnings] == [
        "seed 2 is not",
        "seed 3 is not",
    ]
    assert r"| a&amp;b\_\<i\> † |" not in page
    assert r"| a&amp;b\_\<i\> |" in page
    assert r"a\&b\_\textless{}i\textgreater{}" in (
        tmp_path / "report" / "toy" / "table.tex"
    ).read_text("utf-8")
    for line in (
        "| toy/even/00000000/seed=3 | run left out | summary.json is not valid JSON from line 1",
        "| toy/even/00000000/seed=2 | run left out | metrics.csv lacks the final measurement",
        "| stray | passed over | not a run directory",
        "| loop | passed over | a symbolic link: not followed",
    ):
        assert line in page
    assert "multirun.yaml" not in page


@pytest.mark.usefixtures("tables_only")
def test_warnings_of_runs_stand_on_the_page(outputs, tmp_path):
    for seed in (0, 1):
        outputs.run("even", seed, extra={"warnings": ["weights are one-hot"], "notes": "no list"})
    outputs.run("opt", 0, extra={"notes": ["other bytes"]})
    result = write_report(outputs.root, tmp_path / "report")
    page = result.page.read_text("utf-8")
    assert "| even † | 2 | 1 |" in page
    assert "- even: weights are one-hot (2 of 2 runs)" in page
    assert "| opt | 1 | 1 |" in page
    assert "- opt: other bytes (1 of 1 run)" in page
    assert "† even: weights are one-hot (2 of 2 runs)" in summary_text(result)
    runs = csv.DictReader((tmp_path / "report" / "toy" / "runs.csv").open(encoding="utf-8"))
    assert [row["warnings"] for row in runs] == ["weights are one-hot"] * 2 + [""]


@pytest.mark.usefixtures("tables_only")
def test_an_averaged_model_has_a_row_of_its_own(outputs, tmp_path):
    for seed in (0, 1):
        path = outputs.run("minimax", seed)
        with (path / "metrics.csv").open("a", encoding="utf-8") as stream:
            for split, domain in product(("train_averaged", "test_averaged"), ("a", "b")):
                stream.write(f"100,10.0,{split},{domain},0.125,{60 + seed},40\n")
    result = write_report(outputs.root, tmp_path / "report")
    last, mean = result.sections[0].table.rows
    assert (last.label, mean.label, mean.seeds) == ("minimax", "minimax (averaged)", (0, 1))
    assert [cell.mean for cell in mean.cells] == [0.125, 60.5, 60.5] * 2 + [60.5, 60.5, 0.125, 60.5]
    assert last.cells[0].mean == 0.5
    runs = list(csv.DictReader((tmp_path / "report" / "toy" / "runs.csv").open()))
    found = [(r["method"], r["seed"], r["a_test_accuracy"]) for r in runs]
    assert found[2:] == [("minimax (averaged)", "0", "60.0"), ("minimax (averaged)", "1", "61.0")]


@pytest.mark.usefixtures("tables_only")
def test_a_broken_bound_is_said_loudly(outputs, tmp_path):
    for seed, measured in enumerate((0.1, 0.5)):
        regret = {"measured": measured, "bound": 0.25, "mu": 1.0, "updates": 100}
        outputs.run("opt", seed, extra={"regret": regret})
    outputs.run("ot", 0, extra={"regret": {"measured": 0.1, "bound": None, "mu": 1.0}})
    outputs.run("kl", 0, extra={"regret": {"measured": math.nan, "bound": 0.1, "mu": 1.0}})
    outputs.run("even", 0)
    result = write_report(outputs.root, tmp_path / "report")
    page, text = result.page.read_text("utf-8"), summary_text(result)
    alarm = "BOUND BROKEN by opt, seed 1: measured regret 0.5 is above the proved bound 0.25"
    assert f"**{alarm} (toy/opt/00000000/seed=1)" in page
    assert alarm in text
    assert "| opt | 2 | 0.300 ± 0.283 | 0.250 | **NO** |" in page
    assert "| ot | 1 | 0.100 | – | – |" in page
    assert (
        "| kl | 1 | "
        not in page.partition("### Regret of the adversary")[2].partition("### Compute")[0]
    )


def test_the_same_runs_give_the_same_bytes(tmp_path):
    first = write_report(RUNS, tmp_path / "1", "toy_1")
    second = write_report(RUNS, tmp_path / "2", "toy_1")
    for one, other in zip(first.files, second.files, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
    assert first.html in first.files
    assert str(tmp_path) not in first.html.read_text("utf-8")


@pytest.mark.usefixtures("tables_only")
def test_a_report_among_the_outputs_does_not_report_on_itself(outputs):
    outputs.run()
    out = outputs.root / "report"
    write_report(outputs.root, out)
    assert write_report(outputs.root, out).problems == ()


@pytest.mark.usefixtures("tables_only")
def test_no_file_of_an_earlier_report_is_left_and_every_other_is(outputs, tmp_path):
    out, kept = tmp_path / "report", tmp_path / "kept.md"
    for method, data in product(("even", "opt"), ("toy", "old")):
        outputs.run(method, data=data)
    write_report(outputs.root, out)
    kept.write_text("mine", "utf-8")
    mine = [out / "toy" / "notes.txt", out / "old" / "notes.txt", out / "toy" / "paired.md"]
    for path in mine:
        path.write_text("mine", "utf-8")
    shutil.rmtree(outputs.root / "toy" / "even")
    shutil.rmtree(outputs.root / "old")
    with (out / "files.sha256").open("a", encoding="utf-8") as stream:
        stream.write(f"{hashlib.sha256(b'mine').hexdigest()}  ../kept.md\n")
    result = write_report(outputs.root, out)
    assert all(path.read_text("utf-8") == "mine" for path in (kept, *mine))
    there = {path for path in out.rglob("*") if path.is_file()}
    assert there == {*result.files, out / "files.sha256", *mine}
    assert out / "toy" / "paired.csv" not in there
    listed = (out / "files.sha256").read_text("utf-8").splitlines()
    assert len(listed) == len(result.files)


@pytest.mark.parametrize("place", [".", "..", "report", "toy", "toy/even"])
@pytest.mark.usefixtures("tables_only")
def test_a_report_at_above_or_inside_the_outputs_hides_nothing(outputs, place):
    outputs.run("even", 0)
    (outputs.run("even", 1) / "summary.json").write_text("{", "utf-8")
    (outputs.run("opt", 0) / "config.yaml").write_text("[", "utf-8")
    (outputs.root / "foreign").mkdir()
    (outputs.root / "foreign" / "x").write_text("", "utf-8")
    for _ in range(2):
        result = write_report(outputs.root, outputs.root / place)
        found = [one.path.relative_to(outputs.root).as_posix() for one in result.problems]
        lost = ["toy/even/00000000/seed=1", "toy/opt/00000000/seed=0"]
        assert found == ["foreign", *lost]
        assert [group.seeds for group in result.sections[0].section.groups] == [(0,)]


@pytest.mark.usefixtures("tables_only")
def test_one_data_set_can_be_chosen(outputs, tmp_path):
    outputs.run(data="one")
    outputs.run(data="two")
    result = write_report(outputs.root, tmp_path / "report", data="two")
    assert [one.section.data for one in result.sections] == ["two"]
    with pytest.raises(UserError, match=r"--data three: .* runs of: one, two"):
        write_report(outputs.root, tmp_path / "report", data="three")


@pytest.mark.usefixtures("tables_only")
def test_nothing_found_says_what_to_run(outputs, tmp_path):
    with pytest.raises(UserError, match="no runs in it; make some with `robustmd train"):
        write_report(outputs.root, tmp_path / "report")
    outputs.run(extra={"status": "failed", "message": "out of memory"})
    with pytest.raises(UserError, match=r"first: toy/even/00000000/seed=0: failed .*out of memory"):
        write_report(outputs.root, tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_folder_that_cannot_be_written_is_a_users_mistake(outputs, tmp_path):
    outputs.run()
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(UserError, match=r"cannot be written .* --out"):
        write_report(outputs.root, tmp_path / "file")


def command(*arguments, cwd, **environment):
    code = "import sys; from robustmd.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, "report", *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        check=False,
    )


def test_the_command(tmp_path):
    done = command(str(RUNS), "--out", "report", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (GOLDEN / "terminal.txt").read_text("utf-8")
    done = command("nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(b"robustmd: nowhere: no such folder")


@pytest.mark.usefixtures("tables_only")
def test_a_terminal_of_seven_bits_has_question_marks(tmp_path, monkeypatch):
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii"))
    assert main(["report", str(RUNS), "--data", "toy_1", "--out", str(tmp_path / "report")]) == 0
    assert b"85.00 ? 7.07" in shown.getvalue()


def test_a_report_loads_no_torch(outputs, tmp_path):
    outputs.run()
    code = "from robustmd.commands import report; report.main(['outputs']); import sys; "
    code += "print('torch' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout.splitlines()[-1] == b"False False"


@pytest.mark.usefixtures("tables_only")
def test_the_page_names_the_baseline_and_one_that_is_not_there_is_refused(outputs, tmp_path):
    for method in ("erm", "opt"):
        outputs.run(method)
    result = write_report(outputs.root, tmp_path / "report")
    for text in (result.page.read_text("utf-8"), result.html.read_text("utf-8")):
        assert "method − erm" in text
        assert "even" not in text.split("method − erm")[0].split("<body")[-1]
    with pytest.raises(UserError, match="no finished run of it; there are runs of: erm, opt"):
        write_report(outputs.root, tmp_path / "report", baseline="even")
