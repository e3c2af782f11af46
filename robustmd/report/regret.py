"""The adversary's regret, measured in the runs, beside the bound that is proved for it."""

import math
import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from robustmd.report.aggregate import Section
from robustmd.report.estimate import SPREAD_WORDS, estimate, estimate_cell, value_text
from robustmd.report.quantities import LOSS
from robustmd.report.sheet import NOTHING, Cell, Sheet, field, make_sheet
from robustmd.runs.run import Run

ROUNDING = 1e-9  # nats: what float64 sums of losses may be off by, and more
CAPTION = (
    "How much better the best fixed weights would have done than the weights that were played, "
    "against the run's own mini-batch losses,{in_unit} per update and with the method's "
    f"regularizer; mean ± {SPREAD_WORDS['std']}. Bound: what is proved for the largest ascent "
    f"direction that the run saw, its mean over seeds ({NOTHING}: none is proved for this rule). "
    "It holds for every run whatever the losses were, so a run above it is a mistake in the "
    "software."
)
COLUMNS = ["label", "seed", "place", "measured", "bound", "mu"]


def regrets(section: Section) -> pd.DataFrame:
    """A row for each run that recorded its regret: `label` of its row, `seed`, `place`; `measured`
    and `bound` per update (NaN: none is proved), `mu`, its μ_obs; `is_broken`: it is above its
    bound."""
    found = [
        {"label": group.label, "seed": run.seed, "place": run.place, **recorded}
        for group in section.groups
        for run in group.runs
        if (recorded := _recorded(run)) is not None
    ]
    frame = pd.DataFrame(found, columns=COLUMNS).astype({"measured": float, "bound": float})
    return frame.assign(is_broken=frame["measured"] > frame["bound"] + ROUNDING)


def _recorded(run: Run) -> dict[str, float] | None:
    """None where it recorded none, or what can be no regret."""
    recorded = run.summary.get("regret")
    if not isinstance(recorded, dict):
        return None
    found: dict[str, Any] = {key: recorded.get(key) for key in ("measured", "bound", "mu")}
    numbers = [value for key, value in found.items() if key != "bound" or value is not None]
    is_sound = all(type(value) in (int, float) and math.isfinite(value) for value in numbers)
    return found if is_sound else None


def by_row(found: pd.DataFrame) -> list[pd.DataFrame]:
    """The runs of each row of the table."""
    return [runs for _, runs in found.groupby("label", sort=False)]


def alarms(found: pd.DataFrame) -> Iterator[str]:
    """A line for each run that broke its bound: numbers, and where it lies."""
    for run in found[found["is_broken"]].itertuples():
        yield (
            f"BOUND BROKEN by {run.label}, seed {run.seed}: measured regret {run.measured:.6g} is "
            f"above the proved bound {run.bound:.6g} ({run.place}). "
            "This is a mistake in the software, not in the run: please report it with that folder"
        )


def regret_sheet(found: pd.DataFrame, section: Section) -> Sheet:
    """One row for each method, and an alarm for every broken bound; a CSV file has the largest
    μ_obs too."""
    fields = [
        field("method", lambda runs: runs["label"].iloc[0], "method"),
        field("n", len, "n", kind="number"),
        field(None, _seeds, "seeds"),
        field("measured regret", measured_cell, "measured_mean", "measured_std", kind="number"),
        field("proved bound", bound_cell, "bound_mean", kind="number"),
        field(None, lambda runs: float(runs["mu"].max()), "mu_max"),
        field("holds", holds_cell, "holds"),
        field(None, lambda runs: _seeds(runs[runs["is_broken"]]), "broken_seeds"),
    ]
    name, caption = "regret of the adversary", CAPTION.format(in_unit=section.loss.in_unit)
    return make_sheet(name, by_row(found), fields, caption=caption, alarms=tuple(alarms(found)))


def _seeds(runs: pd.DataFrame) -> str:
    return " ".join(map(str, runs["seed"]))


def measured_cell(runs: pd.DataFrame) -> Cell:
    """Mean and spread, which is of another sign where the best weights did worse."""
    cell = estimate_cell(estimate(runs["measured"]), LOSS)
    return replace(cell, text=cell.text.replace("-", "−"))


def bound_cell(runs: pd.DataFrame) -> Cell:
    """The mean over the seeds; nothing unless every run has one."""
    mean = statistics.fmean(runs["bound"])
    return Cell(NOTHING, (None,)) if math.isnan(mean) else Cell(value_text(LOSS, mean), (mean,))


def holds_cell(runs: pd.DataFrame) -> Cell:
    """Whether every run kept its bound."""
    if runs["is_broken"].any():
        return Cell("NO", ("NO",), mark="broken")
    is_bounded = runs["bound"].notna().all()
    return Cell("yes", ("yes",)) if is_bounded else Cell(NOTHING, ("",))
