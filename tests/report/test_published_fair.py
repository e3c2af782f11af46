"""The tables of docs/fair.md are those of the runs in outputs/published/fair."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

from robustmd.report.statistics import difference, holm

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "outputs" / "published" / "fair"
METHODS = {"digits_typed": 19, "typed_turned": 19, "typed_few": 19, "handwritten_few": 18}
FAMILIES = [RECORDS / name for name in METHODS]
QUANTITIES = {
    "worst training loss": "worst_train_loss",
    "worst test accuracy": "worst_test_accuracy",
}
for_each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda path: path.name)


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "scripts" / "fair_tables.py"))


@for_each_family
def test_the_page_has_its_table(family, script):
    rows = "\n".join(script["rows"](family))
    assert rows.count("\n") == METHODS[family.name] - 1
    assert rows in (ROOT / "docs" / "fair.md").read_text("utf-8")


def test_the_page_has_the_table_of_the_rate_alone(script):
    rows = "\n".join(script["alone_rows"](FAMILIES))
    assert rows.count("\n") == 17
    assert rows in (ROOT / "docs" / "fair.md").read_text("utf-8")


@for_each_family
def test_each_seed_chose_by_its_validation_split_and_had_every_configuration(family, script):
    runs = pd.read_csv(family / "fair_runs.csv.gz")
    ended = runs[runs["status"].isin(["finished", "diverged"])]
    assert len(ended) == len(runs)
    assert set(runs.groupby(["method", "seed"]).size()) <= {10, 11}
    assert set(runs["seed"]) == set(range(8))
    chosen = script["chosen"](script["read"](family))
    assert set(chosen["path"]) == set(runs["path"][runs["chosen"] == "yes"])


@for_each_family
def test_differences_are_those_of_the_chosen_runs(family, script):
    chosen = script["chosen"](script["read"](family)).set_index(["method", "seed"])
    paired = pd.read_csv(family / "fair_paired.csv")
    assert len(paired) == (METHODS[family.name] - 1) * 3
    for one in paired[paired["quantity"].isin(QUANTITIES)].itertuples():
        values = chosen[QUANTITIES[one.quantity]]
        found = difference(values[one.method] - values["even"])
        ends = (found[key] for key in ("difference", "ci95_low", "ci95_high"))
        assert (*ends,) == pytest.approx(
            (one.difference, one.ci95_low, one.ci95_high), rel=1e-9, abs=1e-12
        )
    assert holm(paired["p_t"]).tolist() == pytest.approx(list(paired["p_holm"]))
