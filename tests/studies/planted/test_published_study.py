"""docs/planted.md's tables are those of outputs/published/planted."""

from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[3]
COLUMNS = {
    "base": ("difficulty", 1),
    "difficulty 8": ("difficulty", 8),
    "size 30": ("size", 30),
    "label noise 0.45": ("label noise", 0.45),
    "domains 50": ("domains", 50),
    "outlier 150": ("outlier", 150),
}


@pytest.mark.parametrize("measure", ["suboptimality", "excess"])
def test_the_page_has_its_table(measure):
    table = pd.read_csv(ROOT / "outputs" / "published" / "planted" / "planted.csv.gz")
    found = table[table["measure"] == measure].set_index(["factor", "level", "method"])
    text = (ROOT / "docs" / "planted.md").read_text("utf-8")
    for method in table["method"].unique():
        cells = [found.loc[(*column, method)] for column in COLUMNS.values()]
        values = (f"{x['mean']:.4f} ± {x['std']:.4f} ({x.seeds_below_even:.0f})" for x in cells)
        assert f"| {method} | {' | '.join(values)} |" in text
