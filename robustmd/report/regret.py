"""The adversary's regret, measured in the runs, beside the bound that is proved for it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from robustmd.report.aggregate import Section
from robustmd.report.estimate import (
    SPREAD_WORDS,
    Estimate,
    estimate,
    estimate_cell,
    value_text,
)
from robustmd.report.quantities import LOSS
from robustmd.report.sheet import NOTHING, Cell, Sheet, field, make_sheet
from robustmd.runs.run import LossName, Problem, Run

ROUNDING = 1e-9  # nats: what float64 sums of losses may be off by, and more
CAPTION = (
    "How much better the best fixed weights would have done than the weights that were played, "
    "against the run's own mini-batch losses,{in_unit} per update and with the method's "
    f"regularizer; mean ± {SPREAD_WORDS['std']}. Bound: what is proved for the largest ascent "
    f"direction that the run saw, its mean over seeds ({NOTHING}: none is proved for this rule). "
    "It holds for every run whatever the losses were, so a run above it is a mistake in the "
    "software."
)


@dataclass(frozen=True)
class Regret:
    """Of one run, per update; `bound` is None where none is proved, `mu` is its μ_obs."""

    run: Run
    measured: float
    bound: float | None
    mu: float


@dataclass(frozen=True)
class RegretRow:
    """The runs of a group that recorded a regret, by seed."""

    label: str
    regrets: tuple[Regret, ...]

    @property
    def loss(self) -> LossName:
        """What its numbers are per update."""
        return self.regrets[0].run.loss_name

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(one.run.seed for one in self.regrets)

    @property
    def measured(self) -> Estimate:
        return estimate(one.measured for one in self.regrets)

    @property
    def bound(self) -> Estimate | None:
        """Over the seeds; None unless every run has one."""
        bounds = [one.bound for one in self.regrets if one.bound is not None]
        return estimate(bounds) if len(bounds) == len(self.regrets) else None

    @property
    def broken(self) -> tuple[Regret, ...]:
        """Those above their bound."""
        bounded = (one for one in self.regrets if one.bound is not None)
        return tuple(one for one in bounded if one.measured > one.bound + ROUNDING)  # type: ignore[operator]

    @property
    def holds(self) -> Literal["yes", "NO", "–"]:
        """Whether every run kept its bound."""
        if self.broken:
            return "NO"
        return "–" if self.bound is None else "yes"


def _regret(run: Run) -> Regret | None:
    """What the run recorded; None where it recorded none, or nothing that could be a regret."""
    recorded = run.summary.get("regret")
    if not isinstance(recorded, dict):
        return None
    measured, mu, bound = (recorded.get(key) for key in ("measured", "mu", "bound"))
    if all(map(_is_number, (measured, mu, 0.0 if bound is None else bound))):
        return Regret(run, measured, bound, mu)  # type: ignore[arg-type]
    return None


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value)


def regret_rows(section: Section) -> tuple[RegretRow, ...]:
    """A row for each group of which a run recorded its regret."""
    found = ((group.label, tuple(map(_regret, group.runs))) for group in section.groups)
    rows = (RegretRow(label, tuple(filter(None, regrets))) for label, regrets in found)
    return tuple(row for row in rows if row.regrets)


def unreadable_regrets(section: Section) -> list[Problem]:
    """Runs that recorded something under `regret` which is none."""
    reason = "summary.json's regret is not made of finite numbers: left out of the regret table"
    return [
        Problem(run.path, reason, "remark", run)
        for run in section.runs
        if run.summary.get("regret") is not None and _regret(run) is None
    ]


def alarms(rows: Sequence[RegretRow]) -> list[str]:
    """One line for each run that broke its bound: numbers, and where it lies."""
    return [
        f"BOUND BROKEN by {row.label}, seed {one.run.seed}: measured regret {one.measured:.6g} is "
        f"above the proved bound {one.bound:.6g} ({one.run.place}). "
        "This is a mistake in the software, not in the run: please report it with that folder"
        for row in rows
        for one in row.broken
    ]


def regret_sheet(rows: Sequence[RegretRow]) -> Sheet:
    """A row a method, and an alarm for every broken bound; a CSV file has the largest μ_obs too."""

    def holds(row: RegretRow) -> Cell:
        return Cell(row.holds, (row.holds.strip(NOTHING),), mark="broken" if row.broken else "")

    fields = [
        field("method", lambda row: row.label, "method"),
        field("n", lambda row: len(row.regrets), "n", kind="number"),
        field(None, lambda row: " ".join(map(str, row.seeds)), "seeds"),
        field("measured regret", measured_cell, "measured_mean", "measured_std", kind="number"),
        field("proved bound", bound_cell, "bound_mean", kind="number"),
        field(None, lambda row: max(one.mu for one in row.regrets), "mu_max"),
        field("holds", holds, "holds"),
        field(None, lambda row: " ".join(str(one.run.seed) for one in row.broken), "broken_seeds"),
    ]
    name = "regret of the adversary"
    caption = CAPTION.format(in_unit=rows[0].loss.in_unit)
    return make_sheet(name, rows, fields, caption=caption, alarms=tuple(alarms(rows)))


def measured_cell(row: RegretRow) -> Cell:
    """Mean and spread, which is of another sign where the best weights did worse."""
    cell = estimate_cell(row.measured, LOSS)
    return replace(cell, text=cell.text.replace("-", "−"))


def bound_cell(row: RegretRow) -> Cell:
    """The mean over the seeds."""
    if row.bound is None:
        return Cell(NOTHING, (None,))
    return Cell(value_text(LOSS, row.bound.mean), (row.bound.mean,))
