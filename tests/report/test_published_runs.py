"""The tables of README are those of the run records that are under version control."""

import csv
import re
import runpy
from pathlib import Path

import pytest

from robustmd.config.identity import config_hash, identity_of, number_changing
from robustmd.report import report
from robustmd.report.aggregate import sections
from robustmd.report.paired import comparisons
from robustmd.report.quantities import WORST_TEST_ACCURACY, WORST_TRAIN_LOSS
from robustmd.runs.files import CONFIG, ENVIRONMENT
from robustmd.runs.reader import collect
from robustmd.runs.untrusted import read_record

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "outputs" / "published"


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, set[str]]]:
    """data set -> row -> its numbers, as README writes them."""
    out = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "draw_all", lambda one: iter(()))
        report.write_report(PUBLISHED / "demo", out)
    found: dict[str, dict[str, set[str]]] = {}
    for path in out.glob("*/table.csv"):
        with path.open(newline="") as file:
            found[path.parent.name] = {row["method"]: written(row) for row in csv.DictReader(file)}
    return found


def written(row: dict[str, str]) -> set[str]:
    means = [name.removesuffix("_mean") for name in row if name.endswith("_mean")]
    pairs = {name: (float(row[f"{name}_mean"]), float(row[f"{name}_std"])) for name in means}
    return {
        f"{mean:.3f} ± {std:.3f}" if name.endswith("loss") else f"{mean:.2f} ± {std:.2f}"
        for name, (mean, std) in pairs.items()
    }


@pytest.mark.parametrize(
    ("data", "heading", "count"),
    [("digits_typed", "handwritten test", 4), ("digits_rotated", "90° test", 3)],
)
def test_readmes_numbers_are_theirs(cells, data, heading, count):
    text = (ROOT / "README.md").read_text("utf-8")
    table = re.search(rf"^\| method \| n \| {heading}.*\n(?:\|.*\n)+", text, re.MULTILINE)
    assert table
    names, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table[0].strip().splitlines()
    ]
    assert len(rows) == count
    for row in rows:
        known = cells[data][row[0].replace(", λ = ", " λ=")]
        shown = dict(zip(names, row, strict=True))
        shown.pop("mean of the other five", None)  # of the domains but one: no column of a report
        assert set(list(shown.values())[2:]) <= known


def test_runs_of_before_have_the_identity_that_their_folder_is_named_by():
    paths = [*PUBLISHED.glob("*/*/*/*/seed=0")]
    assert len(paths) > 10
    for path in paths:
        config, environment = (read_record(path / name) for name in (CONFIG, ENVIRONMENT))
        ways = identity_of(config, environment), number_changing(config)
        assert path.parent.name in map(config_hash, ways), path


@pytest.mark.parametrize("page", ["README.md", "docs/demo.md"])
def test_differences_over_20_seeds_are_theirs(page):
    text = (ROOT / page).read_text("utf-8")
    found, _ = sections(collect(PUBLISHED / "demo_20_seeds").runs)
    compared = [one for section in found for one in comparisons(section)]
    assert len(compared) == 9
    for one in compared:
        decimals = 3 if one.quantity.kind == "loss" else 2
        shown = [f"{x:+.{decimals}f}" for x in (one.difference.mean, *one.difference.interval)]
        mean, low, high = (x.replace("-", "−") for x in shown)
        assert mean in text
        assert f"[{low}, {high}]" in text


@pytest.mark.slow
def test_the_tables_of_lambda_are_theirs():
    script = runpy.run_path(str(ROOT / "scripts" / "choosing_lambda.py"))
    text = (ROOT / "docs" / "choosing_lambda.md").read_text("utf-8")
    table = script["read"](PUBLISHED / "choosing_lambda")
    for family, rate in (("digits_typed", 1.0), ("typed_turned", 0.3), ("typed_few", 1.0)):
        rows = "\n".join(script["rows"](table, family, rate))
        assert rows.count("\n") == 7
        assert rows in text


def test_the_table_of_the_papers_digits_is_theirs():
    text = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    (section,), _ = sections(collect(PUBLISHED / "digits_table").runs)
    for group in section.groups:
        loss = group.estimate(WORST_TRAIN_LOSS)
        test = group.estimate(WORST_TEST_ACCURACY)
        worst = f"{test.mean:.2f} ± {test.spread('std'):.2f}"
        assert f"| {worst} | {loss.mean:.3f} ± {loss.spread('std'):.3f} |" in text
