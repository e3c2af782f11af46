"""The adversary's regret, measured in the runs, beside the bound that is proved for it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SPREAD_WORDS, Estimate, estimate
from robustmd.report.numbers import estimate_cell, value_text
from robustmd.report.quantities import LOSS
from robustmd.report.sheet import NOTHING, Cell, Sheet, field, make_sheet
from robustmd.runs.run import Problem, Run

ROUNDING = 1e-9  # nats: what float64 sums of losses may be off by, and more
CAPTION = (
    "How much better the best fixed weights would have done than the weights that were played, "
    "against the run's own mini-batch losses, in nats per update and with the method's "
    f"regularizer; mean ± {SPREAD_WORDS['std']}. Bound: what is proved for the largest ascent "
    f"direction that the run saw, its mean over seeds ({NOTHING}: none is proved for this rule). "
    "It holds for every run whatever the losses were, so a run above it is a mistake in the "
    "software."
)


@dataclass(frozen=True)
class Regret:
    """Of one run, per update [nats]; `bound` is None where none is proved, `mu` is its μ_obs."""

    measured: float
    bound: float | None
    mu: float

    @property
    def is_within_bound(self) -> bool:
        return self.bound is None or self.measured <= self.bound + ROUNDING


@dataclass(frozen=True)
class RegretRow:
    """A group's runs that recorded a regret, by seed."""

    label: str
    runs: tuple[tuple[Run, Regret], ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.seed for run, _ in self.runs)

    @property
    def measured(self) -> Estimate:
        return estimate(regret.measured for _, regret in self.runs)

    @property
    def bound(self) -> Estimate | None:
        """Over the seeds; None unless every run has one."""
        bounds = [regret.bound for _, regret in self.runs if regret.bound is not None]
        return estimate(bounds) if len(bounds) == len(self.runs) else None

    @property
    def broken(self) -> tuple[tuple[Run, Regret], ...]:
        """The runs above their bound."""
        return tuple(pair for pair in self.runs if not pair[1].is_within_bound)

    @property
    def holds(self) -> Literal["yes", "NO", "–"]:
        """Whether every run kept its bound."""
        if self.broken:
            return "NO"
        return "–" if self.bound is None else "yes"


def regret_of(run: Run) -> Regret | None:
    """What the run recorded; None where it recorded none, or nothing that could be a regret."""
    recorded = run.summary.get("regret")
    if not isinstance(recorded, dict):
        return None
    measured, bound, mu = (_number(recorded.get(key)) for key in ("measured", "bound", "mu"))
    is_bound_lost = bound is None and recorded.get("bound") is not None
    if measured is None or mu is None or is_bound_lost:
        return None
    return Regret(measured, bound, mu)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def regret_rows(section: Section) -> tuple[RegretRow, ...]:
    """A row for each group of which a run recorded its regret."""
    rows = (_row(group) for group in section.groups)
    return tuple(row for row in rows if row.runs)


def _row(group: Group) -> RegretRow:
    pairs = ((run, regret_of(run)) for run in group.runs)
    return RegretRow(group.label, tuple((run, found) for run, found in pairs if found is not None))


def unreadable_regrets(section: Section) -> list[Problem]:
    """Runs that recorded something under `regret` which is none."""
    reason = "summary.json's regret is not made of finite numbers: left out of the regret table"
    return [
        Problem(run.path, reason, "remark", run)
        for run in section.runs
        if run.summary.get("regret") is not None and regret_of(run) is None
    ]


def alarms(rows: Sequence[RegretRow]) -> list[str]:
    """One line for each run that broke its bound: numbers, and where it lies."""
    return [
        f"BOUND BROKEN by {row.label}, seed {run.seed}: measured regret {regret.measured:.6g} is "
        f"above the proved bound {regret.bound:.6g} ({run.path.relative_to(run.root).as_posix()}). "
        "This is a mistake in the software, not in the run: please report it with that folder"
        for row in rows
        for run, regret in row.broken
    ]


def regret_sheet(rows: Sequence[RegretRow]) -> Sheet:
    """A row a method, and an alarm for every broken bound; a CSV file has the largest μ_obs too."""
    fields = [
        field("method", lambda row: row.label, "method"),
        field("n", lambda row: len(row.runs), "n", kind="number"),
        field(None, lambda row: " ".join(map(str, row.seeds)), "seeds"),
        field("measured regret", measured_cell, "measured_mean", "measured_std", kind="number"),
        field("proved bound", bound_cell, "bound_mean", kind="number"),
        field(None, lambda row: max(regret.mu for _, regret in row.runs), "mu_max"),
        field("holds", _holds, "holds"),
        field(None, lambda row: " ".join(str(run.seed) for run, _ in row.broken), "broken_seeds"),
    ]
    name = "regret of the adversary"
    return make_sheet(name, rows, fields, caption=CAPTION, alarms=tuple(alarms(rows)))


def measured_cell(row: RegretRow) -> Cell:
    """Mean and spread, which is of another sign where the best weights did worse."""
    cell = estimate_cell(row.measured, LOSS)
    return replace(cell, text=cell.text.replace("-", "−"))


def bound_cell(row: RegretRow) -> Cell:
    """The mean over the seeds."""
    return (
        Cell(NOTHING, (None,))
        if row.bound is None
        else Cell(value_text(LOSS, row.bound.mean), (row.bound.mean,))
    )


def _holds(row: RegretRow) -> Cell:
    return Cell(row.holds, (row.holds.strip(NOTHING),), mark="broken" if row.broken else "")
