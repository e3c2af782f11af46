"""Prints the tables of docs/fair.md, from every run of the protocol and the report's differences:

python scripts/fair_tables.py [outputs/published/fair]
"""

import sys
from pathlib import Path

import pandas as pd

RECORDS = Path(__file__).parent.parent / "outputs" / "published" / "fair"
PAIR = ["method", "seed"]
ON_TEST = ["worst_test_accuracy", "mean_test_accuracy"]
DECIMALS = {**dict.fromkeys(ON_TEST, 2), "worst_train_loss": 3}


def chosen(family: Path) -> pd.DataFrame:
    """The run of every method and seed with the smallest worst validation loss."""
    runs = pd.read_csv(family / "fair_runs.csv.gz")
    return runs.loc[runs.groupby(PAIR, sort=False)["worst_val_loss"].idxmin()]


def rows(family: Path) -> list[str]:
    """A Markdown row for each method, in the order of the report; * where none beats it in worst
    and mean test accuracy."""
    values = chosen(family).groupby("method", sort=False)[[*DECIMALS]]
    mean, std = values.mean(), values.std()
    paired = pd.read_csv(family / "fair_paired.csv")
    both = mean[ON_TEST]
    found = []
    for method, own in both.iterrows():
        is_beaten = ((both >= own).all(axis=1) & (both > own).any(axis=1)).any()
        cells = [str(method) if is_beaten else rf"{method} \*"]
        for name, decimals in DECIMALS.items():
            pair = mean.loc[method, name], std.loc[method, name]
            cells.append(" ± ".join(f"{value:.{decimals}f}" for value in pair))
        cells += [difference(one) for one in paired[paired["method"] == method].itertuples()]
        cells += [""] * (1 + 2 * len(DECIMALS) - len(cells))  # of even itself
        found.append(f"| {' | '.join(cells)} |")
    return found


def difference(one: tuple) -> str:
    """ "−0.045 [−0.059, −0.030] better"; without a word where it is undecided."""
    decimals = 3 if one.unit == "nats" else 2
    ends = [f"{x:+.{decimals}f}" for x in (one.difference, one.ci95_low, one.ci95_high)]
    mean, low, high = (text.replace("-", "−") for text in ends)
    word = "" if one.verdict == "undecided" else f" **{one.verdict}**"
    return f"{mean} [{low}, {high}]{word}"


def main(records: Path) -> None:
    for family in sorted(records.iterdir()):
        print(f"\n{family.name}", *rows(family), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
