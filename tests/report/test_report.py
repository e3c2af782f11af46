"""The whole report: what it says about damage, warnings and cost, and that it stays light."""

import io
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import OutputsBuilder, summary_text

from robustmd.cli import main
from robustmd.errors import UserError
from robustmd.report.write import write_report

GOLDEN = Path(__file__).parent / "golden"
RUNS = GOLDEN / "runs"
EVEN = "digits/even/00000000/seed={}"


def delete_line(path, part):
    lines = path.read_text("utf-8").splitlines(keepends=True)
    lost = next(i for i, line in enumerate(lines) if line.startswith(part))
    path.write_text("".join(lines[:lost] + lines[lost + 1 :]), "utf-8")


def cut(run):
    path = run / "summary.json"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def move_out(run):
    outside = shutil.move(run / "metrics.csv", run.parents[4] / "metrics.csv")
    (run / "metrics.csv").symlink_to(outside)


@pytest.fixture
def golden(tmp_path, by_method):
    """A copy of the committed runs, to be damaged; and (their digits table, the page, the
    terminal's text) when it is called."""
    runs = Path(shutil.copytree(RUNS, tmp_path / "runs"))

    def reported():
        result = write_report(runs, tmp_path / "report", draw=False)
        table = by_method(tmp_path / "report" / "digits" / "table.csv")
        return table, result.page.read_text("utf-8"), summary_text(result)

    return runs, reported


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (
            lambda run: delete_line(run / "metrics.csv", "60,6.0,test,svhn"),
            "metrics.csv lacks the final measurement (iteration 60) of test on svhn",
        ),
        (cut, "summary.json cannot be read: "),
        (move_out, "metrics.csv cannot be read: is reached by a symbolic link: not followed"),
    ],
)
def test_a_damaged_run_is_listed_and_the_rest_is_right(golden, damage, reason):
    runs, reported = golden
    damage(runs / EVEN.format(2))
    table, page, text = reported()
    assert (table["even"]["n"], table["even"]["seeds"]) == ("2", "0 1")
    assert float(table["even"]["worst_test_accuracy_mean"]) == 83.0
    assert f"| {EVEN.format(2)} | run left out | {reason}" in page
    assert f"seed 2 is not in it: {reason}" in text
    assert f"| even | 2 | {reason}" in page
    assert "robustmd train method=even data=digits seed=2" in page


def test_a_measurement_that_lost_a_row_is_listed(golden):
    runs, reported = golden
    delete_line(runs / EVEN.format(2) / "metrics.csv", "40,4.0,test,svhn")
    table, page, _ = reported()
    # of seed 2: 92 and 94 are left of 90, 92, 94; mean (82 + 84 + 93)/3
    assert float(table["even"]["worst_test_accuracy_mean"]) == pytest.approx(259 / 3)
    assert table["even"]["n"] == "3"
    assert f"| {EVEN.format(2)} | measurement left out | metrics.csv: test at iteration 40" in page


def test_all_of_it_at_once(golden):
    runs, reported = golden
    delete_line(runs / EVEN.format(2) / "metrics.csv", "60,6.0,test,svhn")
    cut(runs / EVEN.format(1))
    (runs / EVEN.format(0) / "config.yaml").write_text(": [", "utf-8")
    (runs / "stray").mkdir()
    (runs / "stray" / "x").write_text("", "utf-8")
    (runs / "multirun.yaml").write_text("hydra: {}", "utf-8")
    (runs / "loop").symlink_to(runs)
    table, page, _ = reported()
    assert "even" not in table
    assert table["opt"]["n"] == "3"
    assert page.count("| run left out |") == 4
    assert "### Paired differences to individual" in page  # what is left to compare with
    assert "| stray | passed over | not a run directory" in page
    assert "| loop | passed over | a symbolic link: not followed" in page
    assert "multirun.yaml" not in page


def test_warnings_of_runs_stand_on_the_page(outputs, written, csv_rows):
    for seed in (0, 1):
        outputs.run("even", seed, extra={"warnings": ["weights are one-hot"], "notes": "no list"})
    outputs.run("opt", 0, extra={"notes": ["other bytes"]})
    result = written()
    page = result.page.read_text("utf-8")
    assert "| even † |" in page
    assert "- even: weights are one-hot (2 of 2 runs)" in page
    assert "| opt |" in page
    assert "- opt: other bytes (1 of 1 run)" in page
    assert "† even: weights are one-hot (2 of 2 runs)" in summary_text(result)
    runs = csv_rows(result.out / "toy" / "runs.csv")
    assert [row["warnings"] for row in runs] == ["weights are one-hot"] * 2 + [""]


def test_an_averaged_model_has_a_row_of_its_own(outputs, written, csv_rows):
    for seed in (0, 1):
        averaged = dict.fromkeys("ab", (0.125, 60 + seed))
        outputs.run("minimax", seed, also={"train_averaged": averaged, "test_averaged": averaged})
    result = written()
    last, mean = csv_rows(result.out / "toy" / "table.csv")
    assert (last["method"], mean["method"]) == ("minimax", "minimax (averaged)")
    assert mean["seeds"] == "0 1"
    means = [float(value) for name, value in mean.items() if name.endswith("_mean")]
    assert means == [0.125, 60.5, 60.5] * 2 + [60.5, 60.5, 0.125, 60.5]
    assert float(last["a_train_loss_mean"]) == 0.5
    runs = csv_rows(result.out / "toy" / "runs.csv")
    found = [(r["method"], r["seed"], r["a_test_accuracy"]) for r in runs]
    assert found[2:] == [("minimax (averaged)", "0", "60.0"), ("minimax (averaged)", "1", "61.0")]


def test_a_broken_bound_is_said_loudly(outputs, written):
    for seed, measured in enumerate((0.1, 0.5)):
        regret = {"measured": measured, "bound": 0.25, "mu": 1.0, "updates": 100}
        outputs.run("opt", seed, extra={"regret": regret})
    outputs.run("ot", 0, extra={"regret": {"measured": 0.1, "bound": None, "mu": 1.0}})
    outputs.run("kl", 0, extra={"regret": {"measured": math.nan, "bound": 0.1, "mu": 1.0}})
    outputs.run("even", 0)
    result = written()
    page, text = result.page.read_text("utf-8"), summary_text(result)
    alarm = "BOUND BROKEN by opt, seed 1: measured regret 0.5 is above the proved bound 0.25"
    assert f"**{alarm} (toy/opt/00000000/seed=1)" in page
    assert alarm in text
    assert "| opt | 2 | 0.300 ± 0.283 | 0.250 | **NO** |" in page
    assert "| ot | 1 | 0.100 | – | – |" in page
    of_regrets = page.partition("### Regret of the adversary")[2].partition("### Compute")[0]
    assert "| kl | 1 | " not in of_regrets


def test_other_files_in_the_folder_stay(outputs, tmp_path, written):
    outputs.run("even")
    notes = tmp_path / "report" / "toy" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine", "utf-8")
    result = written()
    assert notes.read_text("utf-8") == "mine"
    there = {path for path in result.out.rglob("*") if path.is_file()}
    assert there == {*result.files, notes}


@pytest.mark.parametrize("place", [".", "..", "report", "toy", "toy/even"])
def test_a_report_at_above_or_inside_the_outputs_hides_nothing(outputs, place):
    """Nor does it report on itself."""
    outputs.run("even", 0)
    (outputs.run("even", 1) / "summary.json").write_text("{", "utf-8")
    (outputs.run("opt", 0) / "config.yaml").write_text("[", "utf-8")
    (outputs.root / "foreign").mkdir()
    (outputs.root / "foreign" / "x").write_text("", "utf-8")
    for _ in range(2):
        result = write_report(outputs.root, outputs.root / place, draw=False)
        assert [*result.left_out.shown["path"]] == [
            "foreign",
            "toy/even/00000000/seed=1",
            "toy/opt/00000000/seed=0",
        ]
        assert [*result.sections[0].study.runs["seed"]] == [0]


def test_one_data_set_can_be_chosen(outputs, written):
    outputs.run(data="one")
    outputs.run(data="two")
    assert [one.study.data for one in written(data="two").sections] == ["two"]
    with pytest.raises(UserError, match=r"--data three: .* runs of: one, two"):
        written(data="three")


def test_nothing_found_says_what_to_run(outputs, tmp_path, written):
    with pytest.raises(UserError, match="no runs in it; make some with `robustmd train"):
        written()
    outputs.run(extra={"status": "failed", "message": "out of memory"})
    with pytest.raises(UserError, match=r"first: toy/even/00000000/seed=0: failed .*out of memory"):
        written()
    assert not (tmp_path / "report").exists()


def test_a_folder_that_cannot_be_written_is_a_users_mistake(outputs, tmp_path, written):
    outputs.run()
    (tmp_path / "report").write_text("", "utf-8")
    with pytest.raises(UserError, match=r"cannot be written .* --out"):
        written()


def test_the_command_warns_of_nothing_and_loads_no_torch(tmp_path):
    code = (
        "import sys; from robustmd.cli import main; code = main(sys.argv[1:]); "
        "assert not {'torch', 'matplotlib.pyplot'} & {*sys.modules}; sys.exit(code)"
    )
    arguments = ["report", str(RUNS), "--data", "toy_1", "--out", "report"]
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    *_, verdict, page, text = done.stdout.decode().splitlines()
    assert verdict.startswith("toy_1: Worst test accuracy against even: undecided: opt (−5.00")
    assert (page, text) == ("Page: report/index.html", "Text: report/README.md")
    assert str(tmp_path) not in (tmp_path / "report" / "index.html").read_text("utf-8")


def test_a_mistake_is_a_line_and_code_2(capsys):
    assert main(["report", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("robustmd: nowhere: no such folder")


def test_a_terminal_of_seven_bits_has_question_marks(tmp_path, monkeypatch):
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii"))
    assert main(["report", str(RUNS), "--data", "toy_1", "--out", str(tmp_path / "report")]) == 0
    assert b"toy_1 ? 2 domains" in shown.getvalue()


def test_the_page_names_the_baseline_and_one_that_is_not_there_is_refused(outputs, written):
    for method in ("erm", "opt"):
        outputs.run(method)
    result = written()
    for text in (result.page.read_text("utf-8"), result.html.read_text("utf-8")):
        assert "method − erm" in text
        assert "even" not in text.split("method − erm")[0].split("<body")[-1]
    with pytest.raises(UserError, match="no finished run of it; there are runs of: erm, opt"):
        written(baseline="even")


def test_the_seeds_of_two_people_are_one_table(outputs, tmp_path, by_method):
    other = OutputsBuilder(tmp_path / "theirs")
    for seed in (0, 1):
        outputs.run("even", seed)
        other.run("even", seed + 1)
    folders = [outputs.root, other.root]
    result = write_report(folders, tmp_path / "report", draw=False)
    row = by_method(result.out / "toy" / "table.csv")["even"]
    assert (row["n"], row["seeds"]) == ("3", "0 1 2")
    (twice,) = result.left_out.shown["path"]
    assert twice == "theirs/toy/even/00000000/seed=1"


def test_columns_for_a_paper_leave_the_csv_files_as_they_are(outputs, tmp_path, by_method):
    outputs.run("even", 0)
    out = tmp_path / "report"
    command = ["report", str(outputs.root), "--out", str(out), "--no-figures"]
    assert main([*command, "--columns", "worst"]) == 0
    head = (out / "toy" / "table.md").read_text("utf-8").partition("| method")[2].splitlines()[0]
    assert [one.split(" \\[")[0] for one in head.split(" | ")[1:]] == [
        *("worst test acc.", "n", "cfg", "worst training acc.", "worst training loss")
    ]
    assert "a_test_accuracy_mean" in by_method(out / "toy" / "table.csv")["even"]
    assert not [*out.rglob("*.png")]
