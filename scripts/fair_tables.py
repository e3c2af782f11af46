"""Prints the tables of docs/fair.md, from every run of the protocol and the report's differences:

python scripts/fair_tables.py [outputs/published/fair]
"""

import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from robustmd.report.statistics import difference, margin, with_verdicts

RECORDS = Path(__file__).parent.parent / "outputs" / "published" / "fair"
FAMILIES = ("digits_typed", "typed_turned", "typed_few", "handwritten_few")
SEED = ["method", "seed"]
ON_TEST = ["worst_test_accuracy", "mean_test_accuracy"]
DECIMALS = {**dict.fromkeys(ON_TEST, 2), "worst_train_loss": 3}


def read(family: Path) -> pd.DataFrame:
    """Every run; `rate` and `own`, the method's own keys, are its configuration."""
    runs = pd.read_csv(family / "fair_runs.csv.gz")
    runs[["rate", "own"]] = runs["configuration"].str.extract(r"learning_rate=(\S+) ?(.*)")
    return runs


def chosen(runs: pd.DataFrame) -> pd.DataFrame:
    """The run of every method and seed with the smallest worst validation loss."""
    return runs.loc[runs.groupby(SEED, sort=False)["worst_val_loss"].idxmin()]


def alone(runs: pd.DataFrame) -> pd.DataFrame:
    """Those with their own keys at the defaults, and one of the five rates that all methods have:
    most of a method's configurations have these own keys."""
    default = runs.groupby("method")["own"].transform(lambda own: own.mode().iloc[0])
    at_defaults = runs[runs["own"] == default]
    shared = at_defaults.groupby("rate")["method"].nunique()
    return at_defaults[at_defaults["rate"].isin(shared[shared == shared.max()].index)]


def rows(family: Path) -> list[str]:
    """A Markdown row for each method, in the order of the report; * where none beats it in worst
    and mean test accuracy."""
    values = chosen(read(family)).groupby("method", sort=False)[[*DECIMALS]]
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
        cells += [differs(one) for one in paired[paired["method"] == method].itertuples()]
        cells += [""] * (1 + 2 * len(DECIMALS) - len(cells))  # of even itself
        found.append(f"| {' | '.join(cells)} |")
    return found


def differs(one: tuple) -> str:
    """ "−0.045 [−0.059, −0.030] 0.009 better": Holm's p, and no word where it is undecided."""
    decimals = 3 if one.unit == "nats" else 2
    ends = [f"{x:+.{decimals}f}" for x in (one.difference, one.ci95_low, one.ci95_high)]
    mean, low, high = (text.replace("-", "−") for text in ends)
    p = f"{one.p_holm:.2f}" if one.p_holm >= 0.1 else f"{one.p_holm:.2g}"
    p = p if one.p_holm >= 1e-4 else "<0.0001"
    return f"{mean} [{low}, {high}] {p}{said(one.verdict)}"


def said(verdict: str) -> str:
    return f" **{verdict}**" if verdict in ("better", "worse", "equivalent") else ""


def alone_cells(family: Path) -> dict[str, list[str]]:
    """method -> difference to even ± half of its 95 % interval, in worst training loss and worst
    test accuracy, where the rate alone was chosen; Holm is over both and all methods."""
    runs = chosen(alone(read(family))).set_index(SEED)
    lines = []
    for method in runs.index.unique("method").drop("even"):
        for name in ("worst_train_loss", "worst_test_accuracy"):
            even, is_loss = runs.loc["even", name], name.endswith("loss")
            line = {"method": method, "decimals": 3 if is_loss else 2, "resolution": 0.0}
            line |= {"better": "smaller" if is_loss else "larger"}
            line |= {"margin": margin(even.mean(), percent=not is_loss)}
            lines.append(line | difference(runs.loc[method, name] - even))
    cells: dict[str, list[str]] = {}
    for one in with_verdicts(pd.DataFrame(lines)).itertuples():
        half = one.ci95_high - one.difference
        text = f"{one.difference:+.{one.decimals}f} ± {half:.{one.decimals}f}".replace("-", "−")
        text += said(one.verdict) if one.verdict != "equivalent" else ""
        cells.setdefault(one.method, []).append(text)
    return cells


def alone_rows(families: Iterable[Path]) -> list[str]:
    """A Markdown row for each method of the first family, two cells for each family."""
    each = [alone_cells(family) for family in families]
    not_run = ["–"] * 2
    return [
        f"| {method} | {' | '.join(cell for one in each for cell in one.get(method, not_run))} |"
        for method in each[0]
    ]


def main(records: Path) -> None:
    families = [records / name for name in FAMILIES if (records / name).is_dir()]
    for family in families:
        print(f"\n{family.name}", *rows(family), sep="\n")
    print("\nlearning rate alone", *alone_rows(families), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
