"""The fair protocol: every method at the configuration that its validation split chose, each seed
for itself.

It is read from what the runs are: those that have a validation split and agree in data, backbone
and training but for what may be tuned. The test set chooses nothing.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from robustmd.config.settings import TUNED as TUNED_IN_TRAINING
from robustmd.report.aggregate import Group, Section
from robustmd.report.names import clean, some_text
from robustmd.report.paired import Comparison, comparisons, paired_sheet
from robustmd.report.quantities import MEAN_TEST_ACCURACY, WORST_TEST_ACCURACY, Quantity
from robustmd.report.run_list import total_seconds
from robustmd.report.selection import Selected
from robustmd.report.settings_key import FINGERPRINT, Settings, describe, differing, settings_of
from robustmd.report.sheet import Cell, Column, Row, Sheet, csv_sheet, field, make_sheet
from robustmd.report.table import Table, build_table
from robustmd.runs.run import Run

# What a configuration of a method may choose beside the method's own keys; all else is the ground
# that the methods share.
TUNED = tuple(f"training.{key}" for key in TUNED_IN_TRAINING)
DERIVED = ("method.reference", "method.weights")  # taken from other runs: no choice of anybody
PRIOR = "method.prior"  # part of the problem: other weights are another method
WORST_VAL_LOSS = Quantity("loss", "val")
ABOUT = (
    "The fair protocol: of the cfg configurations of a method, every seed takes the one with the "
    "smallest worst-case validation loss, and that run alone is in the row. "
)
SHARED = (
    "on the same data with the same budget, each in the configuration that this seed's validation "
    "split chose for it"
)


class Choice(NamedTuple):
    """What one seed measures a method by. `configuration`: "learning_rate=0.02 λ=1"."""

    selected: Selected
    configuration: str


@dataclass(frozen=True, eq=False)
class Tuned:
    """One method's budget, and what it bought; `domain` is an individual model's.

    `tries`: all its runs, see `_facts`, and what each says of its configuration, `said`;
    `configurations`: different ones of them, over all seeds; `left_out`: seeds without a choice,
    and why.
    """

    label: str
    method: str
    domain: str | None
    prior: Any
    tries: pd.DataFrame
    configurations: int
    choices: tuple[Choice, ...]
    left_out: tuple[str, ...]

    @property
    def chosen(self) -> set[Path]:
        """The run directories that the seeds chose."""
        return {choice.selected.run.path for choice in self.choices}


@dataclass(frozen=True, eq=False)
class Fair:
    """`budgets`: those of individual models, which are not in the table, come last; `others` counts
    runs with a validation split on other ground, which are in neither."""

    table: Table
    budgets: tuple[Tuned, ...]
    others: int

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        return comparisons(self.table.section)

    @property
    def paired(self) -> Sheet:
        """The differences to the baseline under the protocol."""
        found = paired_sheet(self.comparisons, self.table.section, SHARED)
        return replace(found, name=f"{found.name} under the fair protocol")

    @property
    def sheets(self) -> list[Sheet]:
        """All that a reader is shown: the results, what they cost, the differences, the front."""
        paired = [self.paired] if self.comparisons else []
        return [self.table.sheet, budget_sheet(self), *paired, unpaired_sheet(self.table)]


def fair(section: Section) -> Fair | None:
    """The protocol's table, where at least two mixture methods have two configurations or more with
    a validation split on the same ground; of several grounds the one with the most runs."""
    tries = _tries(section)
    if tries.empty:
        return None
    grounds = [_of_same_bytes(found) for _, found in tries.groupby("ground", sort=False)]
    members = max(filter(_has_contest, grounds), key=len, default=tries[:0])
    budgets = [_tuned(pool) for _, pool in members.groupby("pool", sort=False)]
    budgets.sort(key=lambda one: one.domain is not None)
    chosen = [one for one in budgets if one.domain is None and one.choices]
    if not chosen:
        return None
    most = max(one.configurations for one in chosen)
    groups = tuple(_group(one, members["ground"].iloc[0], most) for one in chosen)
    own = replace(section, groups=groups, unfinished=())
    return Fair(build_table(own, ABOUT), tuple(budgets), len(tries) - len(members))


def _tries(section: Section) -> pd.DataFrame:
    """Runs with a validation split, finished or not, by row: see `_facts`."""
    finished = [
        _facts(one.run, group.settings, one)
        for group in section.groups
        for one in group.selected
        if "val" in one.splits
    ]
    lost = [problem.run for problem in section.unfinished if problem.run is not None]
    others = (_facts(run, settings_of(run), None) for run in lost)
    with_split = [one for one in others if one["settings"].get("data.validation") not in (None, 0)]
    return pd.DataFrame([*finished, *with_split])


def _facts(run: Run, settings: Settings, selected: Selected | None) -> dict[str, Any]:
    """`ground`: what methods share; `pool`: whose budget the run is in; `was_tried`: one that
    diverged has had its chance, one that was cut off has not; `loss`: worst on validation."""
    own = (key for key in settings if key.startswith("method.") and key not in DERIVED)
    loss = math.inf if selected is None else WORST_VAL_LOSS.of(selected)
    return {
        "run": run,
        "settings": settings,
        "selected": selected,
        "seed": run.seed,
        "read": settings.get(FINGERPRINT),
        "ground": settings.protocol.without(*TUNED, FINGERPRINT),
        "pool": (run.method, run.domain, settings.get(PRIOR)),
        "configuration": Settings({key: settings.get(key) for key in (*TUNED, *own)}),
        "was_tried": selected is not None or run.status == "diverged",
        "loss": loss if math.isfinite(loss) else math.inf,
    }


def _of_same_bytes(members: pd.DataFrame) -> pd.DataFrame:
    """Those that read what most of them read; unfinished runs may not have written it down."""
    unfinished = members["selected"].isna()
    most = Counter(members["read"][~unfinished]).most_common(1)
    return members[unfinished | (members["read"] == most[0][0])] if most else members[:0]


def _has_contest(members: pd.DataFrame) -> bool:
    """Whether at least two mixture methods have two configurations or more."""
    mixtures = members[[domain is None for _, domain, _ in members["pool"]]]
    return bool((mixtures.groupby("pool")["configuration"].nunique() > 1).sum() > 1)


def _tuned(pool: pd.DataFrame) -> Tuned:
    """The budget of one method and the choice of every seed that had all of it: argmin over its
    configurations of max_k f_k on the validation split, of equals the first."""
    run, (method, domain, prior) = pool["run"].iloc[0], pool["pool"].iloc[0]
    count, varying = pool["configuration"].nunique(), differing(pool["settings"])
    keys = [key for key in pool["configuration"].iloc[0] if key in varying]
    pool = pool.assign(said=[clean(describe(one, keys)) for one in pool["settings"]])
    choices, left_out = [], []
    for seed, runs in pool.groupby("seed"):
        tried = runs[runs["was_tried"]].drop_duplicates("configuration")
        if len(tried) < count:
            why = f"{len(tried)} of {count} configurations have a run that came to an end"
            left_out.append(f"seed {seed} is not in it: {why}")
        elif math.isinf(tried["loss"].min()):
            left_out.append(f"seed {seed} is not in it: all configurations diverged")
        else:
            of_equals = tried["configuration"].map(lambda one: str(sorted(one.items())))
            best = tried.loc[tried["loss"][of_equals.sort_values().index].idxmin()]
            choices.append(Choice(best["selected"], best["said"]))
    label = clean(run.label if prior is None else f"{run.label} prior={prior}")
    found = tuple(choices), tuple(left_out)
    return Tuned(label, method, domain, prior, pool, count, *found)


def _group(one: Tuned, ground: Settings, most: int) -> Group:
    """A row of chosen runs, with what is unlike in its budget. Its settings are the ground, so that
    it pairs with even's."""
    settings = Settings({**ground, "method.name": one.method, PRIOR: one.prior})
    selected, count = tuple(choice.selected for choice in one.choices), one.configurations
    unequal = [f"{count} configurations, while another method has {most}"] if count < most else []
    said = (*unequal, *one.left_out)
    return Group(one.label, one.method, None, settings, selected, count, said=said)


def budget_sheet(found: Fair) -> Sheet:
    """One row for each method: what it cost, and what each seed chose."""

    def seconds(one: Tuned) -> str:
        is_complete = all("total" in run.seconds for run in one.tries["run"])
        return f"{'' if is_complete else '≥ '}{sum(map(total_seconds, one.tries['run'])):.0f}"

    fields = [
        field("method", lambda one: one.label),
        field("cfg", lambda one: one.configurations, kind="number"),
        field("runs", lambda one: len(one.tries), kind="number"),
        field("not finished", lambda one: one.tries["selected"].isna().sum(), kind="number"),
        field("seconds", seconds, kind="number"),
        field("chosen by worst validation loss", chosen_text, kind="long"),
    ]
    caption = (
        "Budget of the fair protocol: configurations (cfg), runs over all seeds, those of them "
        "that diverged or did not end, seconds of all from start to end (≥: not every run wrote "
        "its time down), and what each seed chose; of equals the first. A run that diverged counts "
        "as tried."
    )
    if found.budgets[-1].domain is not None:
        caption += " Individual models are not compared: regret takes f* from them."
    if found.others:
        caption += (
            f" {found.others} more runs have a validation split and differ in data, backbone or "
            "training: they are not in it."
        )
    name = "budget and choices of the fair protocol"
    return make_sheet(name, found.budgets, fields, caption=caption)


def chosen_text(one: Tuned) -> str:
    """ "learning_rate=0.02 λ=1 (seeds 0, 2); learning_rate=0.089 λ=0.47 (seed 1)"; "" of an
    individual model."""
    if one.domain is not None:
        return ""
    seeds: dict[str, list[str]] = defaultdict(list)
    for choice in one.choices:
        seeds[choice.configuration or "the only one"].append(str(choice.selected.run.seed))
    said = (
        f"{name} (seed{'s' if len(of) > 1 else ''} {', '.join(of)})" for name, of in seeds.items()
    )
    return "; ".join([*said, *one.left_out])


def unpaired_sheet(table: Table) -> Sheet:
    """One row for each method, by the mean over its seeds, whichever they are: the worst and the
    mean over the domains on test, and which rows are at least as good in both and better in one."""
    loss = table.section.loss
    both = [one.measured_by(loss) for one in (WORST_TEST_ACCURACY, MEAN_TEST_ACCURACY)]
    shown = table.sheet.arranged(["method", *(f"{one.name}_mean" for one in both), "n"])
    means = np.array([[cell.values[0] for cell in row.cells[1:3]] for row in shown.rows], float)
    costs = -means if both[0].metric.better == "larger" else means
    rows = []
    for own, line in zip(costs, shown.rows, strict=True):
        is_above = (costs <= own).all(axis=1) & (costs != own).any(axis=1)
        above = [shown.rows[place].cells[0].text for place in np.flatnonzero(is_above)]
        text = some_text(above) or "none: on the front"
        rows.append(Row((*line.cells, Cell(text, (text,)))))
    caption = (
        "Unpaired: means over each row's own seeds, on test. A row is dominated by those whose "
        "worst and mean are both at least as good, and not both the same; the others are the "
        "Pareto front. This knows no chance: see ± and the paired differences."
    )
    columns = (*shown.columns, Column("dominated by", ("dominated_by",), "long"))
    return Sheet("worst against mean, unpaired", columns, tuple(rows), caption)


def fair_runs_sheet(found: Fair) -> Sheet:
    """For a CSV file, one row for each run of the compared methods: its configuration, what its
    seed chose by, whether that chose it, what made it, and its values; none of a run that diverged
    or did not end."""
    rows = [
        {
            "method": one.label,
            "seed": run.seed,
            "configuration": said,
            "worst_val_loss": None if selected is None else loss,
            "chosen": "yes" if run.path in one.chosen else "no",
            "status": run.status,
            "path": run.place,
            "git_commit": run.environment.get("git_commit"),
            "seconds": total_seconds(run),
            **{
                column.name: None if selected is None else column.of(selected)
                for column in found.table.columns
            },
        }
        for one in found.budgets
        if one.domain is None
        for run, selected, said, loss in zip(
            *(one.tries[name] for name in ("run", "selected", "said", "loss")), strict=True
        )
    ]
    return csv_sheet("runs of the fair protocol", rows)
