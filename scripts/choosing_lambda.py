"""Draws the figure of docs/choosing_lambda.md and prints its tables, from the records of its runs:

python scripts/choosing_lambda.py [outputs/published/choosing_lambda]
"""

import sys
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

import robustmd

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "outputs" / "published" / "choosing_lambda"
IMAGE = ROOT / "docs" / "images" / "choosing_lambda.png"
COLOURS = {0.1: "tab:blue", 0.3: "tab:orange", 1.0: "tab:green"}  # learning rate
SETTINGS = ["family", "rate", "c", "lam"]


def measured(run: robustmd.Run) -> dict[str, object]:
    """What a run was trained with, and its validation split at the last measurement."""
    config, metrics = run.config, run.metrics
    last = metrics[(metrics.split == "val") & (metrics.iteration == metrics.iteration.max())]
    batches = run.weights.groupby("domain").batch_loss.mean()
    few = "typed_few" if config["data"].get("sizes") else None
    turned = "typed_turned" if config["data"]["name"] == "digits_rotated" else None
    return {
        "family": few or turned or "digits_typed",
        "rate": float(config["training"]["learning_rate"]),
        "c": config["method"].get("c", "even"),
        "lam": float(config["method"].get("lam", 0)),
        "worst loss": last.loss.max(),
        "mean loss": last.loss.mean(),
        "worst accuracy": last.accuracy.min(),
        "mean accuracy": last.accuracy.mean(),
        "spread": batches.max() - batches.min(),
    }


def draw(table: pd.DataFrame) -> Figure:
    """A column for each family, a row for each c: worst validation loss over λ."""
    families = list(table.index.unique("family"))
    figure = Figure(figsize=(4 * len(families), 6.5), layout="constrained")
    panels = figure.subplots(2, len(families), sharex=True, sharey="col", squeeze=False)
    for row, c in zip(panels, ("auto", "centred"), strict=True):
        for axes, family in zip(row, families, strict=True):
            for rate, colour in COLOURS.items():
                found = table.loc[family, rate, c]
                axes.errorbar(
                    found.index,
                    found["worst loss", "mean"],
                    found["worst loss", "std"],
                    color=colour,
                    marker="o",
                    markersize=3,
                    capsize=2,
                    label=f"learning rate {rate:g}",
                )
                even = table.loc[family, rate, "even"]["worst loss", "mean"].item()
                axes.axhline(even, color=colour, linestyle=":")
            axes.set(xscale="log", title=f"{family}, c={c}", xlabel="λ")
        row[0].set_ylabel("worst validation loss [nats]")
    panels[0, 0].legend()
    return figure


def rows(table: pd.DataFrame, family: str, rate: float) -> list[str]:
    """Of one family and rate, a Markdown row for even and for each λ; c=centred's loss last."""
    at = table.loc[family, rate]
    found = [("even", at.loc["even"].iloc[0], None)]
    for lam, of in at.loc["auto"].iterrows():
        found.append((f"{lam:g}", of, at.loc["centred", lam]))
    return [
        f"| {name} | {number(of, 'worst loss', 3)} | {number(of, 'mean loss', 3)} "
        f"| {number(of, 'worst accuracy', 1)} | {number(of, 'mean accuracy', 1)} "
        f"| {'' if centred is None else number(centred, 'worst loss', 3)} |"
        for name, of, centred in found
    ]


def number(of: pd.Series, what: str, decimals: int) -> str:
    return f"{of[what, 'mean']:.{decimals}f} ± {of[what, 'std']:.{decimals}f}"


def read(runs: Path) -> pd.DataFrame:
    """Mean and standard deviation (ddof = 1) over the seeds."""
    every = pd.DataFrame([measured(run) for run in robustmd.load_runs(runs)])
    return every.groupby(SETTINGS).agg(["mean", "std", "count"])


def main(runs: Path) -> None:
    table = read(runs)
    draw(table).savefig(IMAGE, dpi=110)
    for family in table.index.unique("family"):
        for rate in COLOURS:
            spread = number(table.loc[family, rate, "even"].iloc[0], "spread", 2)
            print(
                f"\n{family}, learning rate {rate:g}; s = {spread}",
                *rows(table, family, rate),
                sep="\n",
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
