"""The adversary's regret, measured in the runs, beside the bound that is proved for it."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SPREAD_WORDS, Estimate, estimate
from robustmd.report.names import markdown
from robustmd.report.numbers import estimate_text
from robustmd.runs.run import Problem, Run

ROUNDING = 1e-9  # nats: what float64 sums of losses may be off by, and more
NO_BOUND = "–"
CAPTION = (
    "How much better the best fixed weights would have done than the weights that were played, "
    "against the run's own mini-batch losses, in nats per update and with the method's "
    f"regularizer; mean ± {SPREAD_WORDS['std']}. Bound: what is proved for the largest ascent "
    f"direction that the run saw, its mean over seeds ({NO_BOUND}: none is proved for this rule). "
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


def regret_cells(row: RegretRow) -> tuple[str, str, str, str]:
    """(n, measured, bound, holds) as they are shown."""
    measured = estimate_text(row.measured, is_loss=True).replace("-", "−")
    bound = NO_BOUND
    if row.bound is not None:
        bound = estimate_text(Estimate(row.bound.mean, None, row.bound.n), is_loss=True)
    return str(len(row.runs)), measured, bound, row.holds


def regret_markdown(rows: Sequence[RegretRow]) -> str:
    """Alarms first, then a pipe table under its caption."""
    lines = [f"**{markdown(alarm)}**\n" for alarm in alarms(rows)]
    lines += [
        f"{markdown(CAPTION)}\n",
        "| method | n | measured regret | proved bound | holds |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        n, measured, bound, holds = regret_cells(row)
        said = f"**{holds}**" if row.broken else holds
        lines.append("| " + " | ".join([markdown(row.label), n, measured, bound, said]) + " |")
    return "\n".join(lines) + "\n"


def regret_csv(rows: Sequence[RegretRow]) -> str:
    """The same with every digit, and the largest μ_obs; a field is empty where no number exists."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = "method,n,seeds,measured_mean,measured_std,bound_mean,mu_max,holds,broken_seeds"
    writer.writerow(head.split(","))
    for row in rows:
        measured, bound = row.measured, row.bound
        seeds, broken = (
            " ".join(map(str, s)) for s in (row.seeds, [r.seed for r, _ in row.broken])
        )
        std = "" if measured.std is None else measured.std
        mean = "" if bound is None else bound.mean
        mu = max(regret.mu for _, regret in row.runs)
        holds = "" if row.holds == NO_BOUND else row.holds
        writer.writerow(
            [row.label, len(row.runs), seeds, measured.mean, std, mean, mu, holds, broken]
        )
    return out.getvalue()
