"""The tables of README and docs are those of the run records that are under version control."""

import re
import runpy
import statistics
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import robustmd
from robustmd.config.identity import config_hash, identity_of, number_changing
from robustmd.report.front import LOSS, front
from robustmd.report.numbers import Rule, Study, studies
from robustmd.report.statistics import difference
from robustmd.report.tables import interval_text, results, signed, with_spread
from robustmd.runs.discover import find_run_directories
from robustmd.runs.files import CONFIG, ENVIRONMENT
from robustmd.runs.records import read_records
from robustmd.runs.untrusted import read_record

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "outputs" / "published"


def tables(study: str, rule: str = "last40") -> list[Study]:
    return studies(read_records(PUBLISHED / study), Rule(rule), "std")[0]


def only(study: str) -> Study:
    (found,) = tables(study)
    return found


@pytest.fixture(scope="module")
def cells() -> dict[str, dict[str, list[str]]]:
    """data set -> row -> its numbers, as a report shows them."""
    return {
        study.data: {
            row.removesuffix(" †"): [row, *cells]
            for row, *cells in results(study).shown.itertuples(index=False, name=None)
        }
        for study in tables("demo")
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
        assert {*list(shown.values())[2:]} <= {*known}


def test_runs_of_before_have_the_identity_that_their_folder_is_named_by():
    studies = [path.parent for path in PUBLISHED.glob("*/runs.jsonl.gz")]
    paths = [path for study in studies for path in find_run_directories(study).run_directories]
    assert len(paths) > 800
    for path in paths:
        config, environment = (read_record(path / name) for name in (CONFIG, ENVIRONMENT))
        ways = identity_of(config, environment), number_changing(config)
        assert path.parent.name in map(config_hash, ways), path


@pytest.mark.parametrize(
    ("page", "study", "rule", "count"),
    [
        ("README.md", "demo_20_seeds", "last40", 9),
        ("docs/demo.md", "demo_20_seeds", "last40", 9),
        ("docs/demo.md", "demo_20_seeds", "final", 9),
        ("docs/demo.md", "demo_plateau", "last40", 2),
    ],
)
def test_differences_over_20_seeds_are_theirs(page, study, rule, count):
    text = (ROOT / page).read_text("utf-8")
    found = tables(study, rule)
    compared = [one for study in found for one in study.comparisons.itertuples()]
    assert len(compared) >= count
    for one in compared[:count]:
        decimals = 2 if one.unit == "points" else 3
        shown = [f"{x:+.{decimals}f}" for x in (one.difference, one.ci95_low, one.ci95_high)]
        mean, low, high = (x.replace("-", "−") for x in shown)
        assert mean in text
        assert f"[{low}, {high}]" in text


def test_numbers_that_chose_the_demos_rate_and_lambda_are_theirs():
    text = (ROOT / "docs" / "demo.md").read_text("utf-8")
    losses = defaultdict(list)
    for run in robustmd.load_runs(PUBLISHED / "demo_recipe"):
        last = run.metrics[run.metrics.iteration == run.metrics.iteration.max()]
        name, lam = (run.config["method"].get(key) for key in ("name", "lam"))
        rate = run.config["training"]["learning_rate"]
        turned = run.config["data"]["name"] == "digits_rotated"
        if name == "even" or (name == "opt" and rate == (0.3 if turned else 1)):
            losses[turned, rate, lam].append(last[last.split == "val"].loss.max())
    assert len(losses) == 2 * (4 + 5)
    for values in losses.values():
        assert f"{statistics.fmean(values):.3f} ± {statistics.stdev(values):.3f}" in text


def test_the_table_of_the_static_front_is_theirs():
    text = (ROOT / "docs" / "fair.md").read_text("utf-8")
    found = front(only("static_front"))
    assert found
    assert len(found.points) == 11
    metric = found.study.metrics["loss"]
    for one in found.against.itertuples():
        loss = found.study.values[LOSS][one.method]
        interval = interval_text(metric, one.ci95_low, one.ci95_high)
        said = f"{signed(metric, one.difference)} {interval} | {one.verdict}"
        assert f"| {one.method} | {loss.mean():.3f} ± {loss.std():.3f} | {said} |" in text


def test_the_table_of_many_domains_is_theirs():
    """Of 25 runs with 1,000 domains the report's line of each is there, not its records."""
    text = (ROOT / "docs" / "many_domains.md").read_text("utf-8")
    runs = pd.read_csv(PUBLISHED / "many_domains" / "runs.csv.gz").set_index(["method", "seed"])
    losses = runs.filter(regex=r"^rotate_\d+_sigma_\d+_train_loss$")
    assert losses.shape == (25, 1000)
    assert losses.max(axis=1).tolist() == pytest.approx(runs["worst_train_loss"].tolist())
    kinds = {"train_loss": 3, "test_accuracy": 2}
    decimals = {
        f"{of}_{kind}": kinds[kind] for kind in kinds for of in ("worst", "worst_tenth", "mean")
    }
    even = runs["worst_train_loss"]["even"]
    for method in runs.index.unique("method"):
        cells = [
            f"{runs[name][method].mean():.{places}f} ± {runs[name][method].std():.{places}f}"
            for name, places in decimals.items()
        ]
        assert f"| {' | '.join(cells)} |" in text
        if method in ("opt", "kl", "cvar"):
            found = difference(list(runs["worst_train_loss"][method] - even))
            ends = (found[key] for key in ("difference", "ci95_low", "ci95_high"))
            shown = [f"{x:+.3f}".replace("-", "−") for x in ends]
            assert f"{shown[0]} [{shown[1]}, {shown[2]}]" in text


@pytest.mark.slow
def test_the_tables_of_lambda_are_theirs():
    script = runpy.run_path(str(ROOT / "scripts" / "choosing_lambda.py"))
    text = (ROOT / "docs" / "choosing_lambda.md").read_text("utf-8")
    table = script["read"](PUBLISHED / "choosing_lambda")
    for family, rate in (("digits_typed", 1.0), ("typed_turned", 0.3), ("typed_few", 1.0)):
        rows = "\n".join(script["rows"](table, family, rate))
        assert rows.count("\n") == 7
        assert rows in text


def spread_text(study: Study, row: str, name: tuple[str, str, str]) -> str:
    values = study.values[name][row]
    return with_spread(study.metrics[name[2]], values.mean(), values.std())


def test_the_tables_of_the_papers_digits_and_of_lambda_are_theirs():
    text = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    found = [only(study) for study in ("digits_table", "lambda_l2")]
    rows = [(study, row) for study in found for row in study.rows.index]
    assert len(rows) == 7
    for one in rows:
        worst = spread_text(*one, ("worst", "test", "accuracy")), spread_text(*one, LOSS)
        assert f"| {worst[0]} | {worst[1]} |" in text
        assert f"| {spread_text(*one, ('mnist', 'test', 'accuracy'))} |" in text


def test_the_ratios_of_times_are_theirs():
    text = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    runs = only("running_time").runs
    seconds = {
        method: np.array([spent["training"] for spent in own["seconds"]])
        for method, own in runs.groupby("method")
    }
    for method in ("opt", "ot", "oracle"):
        found = difference(seconds[method] / seconds["even"])
        mean, low, high = (found[key] for key in ("difference", "ci95_low", "ci95_high"))
        assert f"| {method} | {mean:.3f} [{low:.3f}, {high:.3f}] |" in text
