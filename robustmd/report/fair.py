"""The fair protocol: every method at the configuration that its validation split chose, each seed
for itself.

It is read from what the runs are: those that have a validation split and agree in data, backbone
and training but for what may be tuned. The test set chooses nothing.
"""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustmd.report.aggregate import Group, Section
from robustmd.report.compute import total_seconds
from robustmd.report.estimate import SpreadKind
from robustmd.report.fair_tries import (
    PRIOR,
    Key,
    Try,
    has_contest,
    of_same_bytes,
    tries_of,
    tunable,
)
from robustmd.report.names import clean
from robustmd.report.paired import Comparison, comparisons
from robustmd.report.selection import Selected, Selection
from robustmd.report.settings_key import describe, differing
from robustmd.report.table import AVERAGED, Row, Table, build_table


@dataclass(frozen=True)
class Choice:
    """What one seed measures a method by. `val_loss`: max_k f_k on the validation split [nats], the
    smallest of the method's configurations at this seed; `configuration`: "learning_rate=0.02 λ=1".
    """

    selected: Selected
    configuration: str
    val_loss: float

    @property
    def seed(self) -> int:
        return self.selected.seed


@dataclass(frozen=True)
class Tuned:
    """One method's budget, and what it bought.

    `configurations`: different ones, over all seeds; `unfinished`: runs that diverged, failed or
    did not end; `seconds` of all runs, at least this where not `is_complete`; `left_out`: seeds
    without a choice, and why.
    """

    label: str
    method: str
    configurations: int
    finished: int
    unfinished: int
    seconds: float
    is_complete: bool
    choices: tuple[Choice, ...]
    left_out: tuple[str, ...]

    @property
    def runs(self) -> int:
        return self.finished + self.unfinished


@dataclass(frozen=True)
class FairTable(Table):
    """The paper's columns under the fair protocol."""

    @property
    def caption(self) -> str:
        return (
            "The fair protocol: of the cfg configurations of a method, every seed takes the one "
            "with the smallest worst-case validation loss, and that run alone is in the row. "
            + super().caption
        )


@dataclass(frozen=True)
class Fair:
    """`methods` are in the table, `references` (individual models) in the budget alone; `others`
    counts runs with a validation split on other ground, which are in neither."""

    methods: tuple[Tuned, ...]
    references: tuple[Tuned, ...]
    table: FairTable
    comparisons: tuple[Comparison, ...]
    others: int


def fair(section: Section, selection: Selection, spread: SpreadKind) -> Fair | None:
    """The protocol's table, where at least two mixture methods have two configurations or more with
    a validation split on the same ground; of several grounds the one with the most runs.

    Args:
        section: made with `selection`, which also says which measurements a run is chosen by.
        selection: the rule for every row.
        spread: what stands behind ±.
    """
    tries = list(tries_of(section))
    grounds: dict[Key, list[Try]] = defaultdict(list)
    for one in tries:
        grounds[one.ground].append(one)
    found = [list(of_same_bytes(members)) for members in grounds.values()]
    found = [members for members in found if has_contest(members)]
    if not found:
        return None
    members = max(found, key=len)
    pools: dict[Any, list[Try]] = defaultdict(list)
    for one in members:
        pools[one.pool].append(one)
    tuned = {key: _tuned(pool) for key, pool in pools.items()}
    chosen = {key: one for key, one in tuned.items() if key[1] is None and one.choices}
    if not chosen:
        return None
    groups = tuple(_group(one, members[0], key[2]) for key, one in chosen.items())
    own = dataclasses.replace(section, groups=groups, unfinished=())
    return Fair(
        tuple(one for key, one in tuned.items() if key[1] is None),
        tuple(one for key, one in tuned.items() if key[1] is not None),
        _table(own, tuple(chosen.values()), selection, spread),
        comparisons(own),
        len(tries) - len(members),
    )


def _tuned(pool: Sequence[Try]) -> Tuned:
    """The budget of one method and the choice of every seed that had all of it."""
    configurations = list(dict.fromkeys(one.configuration for one in pool))
    varying = differing(one.settings for one in pool)
    keys = [key for key in tunable(pool[0].settings) if key in varying]
    by_seed: dict[int, dict[Key, Try]] = defaultdict(dict)
    for one in pool:
        if one.was_tried:
            by_seed[one.run.seed].setdefault(one.configuration, one)
    choices, left_out = [], []
    for seed in sorted({one.run.seed for one in pool}):
        tried = by_seed.get(seed, {})
        best = _best(tried, keys)
        if len(tried) < len(configurations):
            left_out.append(
                f"seed {seed} is not in it: {len(tried)} of {len(configurations)} configurations "
                "have a run that came to an end"
            )
        elif best is None:
            left_out.append(f"seed {seed} is not in it: all configurations diverged")
        else:
            choices.append(best)
    run, prior = pool[0].run, pool[0].settings.get(PRIOR)
    finished = sum(one.selected is not None for one in pool)
    return Tuned(
        label=clean(run.label if prior is None else f"{run.label} prior={prior}"),
        method=run.method,
        configurations=len(configurations),
        finished=finished,
        unfinished=len(pool) - finished,
        seconds=sum(total_seconds(one.run) for one in pool),
        is_complete=all("total" in one.run.seconds for one in pool),
        choices=tuple(choices),
        left_out=tuple(left_out),
    )


def _best(tried: Mapping[Key, Try], keys: Sequence[str]) -> Choice | None:
    """argmin over configurations of max_k f_k on the validation split; of equals the first."""
    found = [
        Choice(one.selected, clean(describe(one.settings, keys)), one.selected.worst_loss("val"))
        for _, one in sorted(tried.items(), key=lambda item: str(item[0]))
        if one.selected is not None
    ]
    known = [one for one in found if math.isfinite(one.val_loss)]
    return min(known, key=lambda one: one.val_loss, default=None)


def _group(one: Tuned, like: Try, prior: Any) -> Group:
    """A row of chosen runs. Its settings are the ground, so that it pairs with even's."""
    settings = {**dict(like.ground), "method.name": one.method, PRIOR: prior}
    selected = tuple(choice.selected for choice in one.choices)
    return Group(one.label, one.method, None, settings, selected, one.configurations)


def _table(
    own: Section, tuned: Sequence[Tuned], selection: Selection, spread: SpreadKind
) -> FairTable:
    """Our rows of the last models, with what is unlike in their budgets."""
    table = build_table(own, selection, spread)
    rows = {row.label: row for row in table.rows if not row.published}
    most = max(one.configurations for one in tuned)
    kept = tuple(_warned(rows[one.label], one, most) for one in tuned)
    values = {item.name: getattr(table, item.name) for item in dataclasses.fields(table)}
    assert not any(row.label.endswith(AVERAGED) for row in kept)
    return FairTable(**values | {"rows": kept})


def _warned(row: Row, one: Tuned, most: int) -> Row:
    unequal = (
        (f"{one.configurations} configurations, while another method has {most}",)
        if one.configurations < most
        else ()
    )
    return dataclasses.replace(row, warnings=(*row.warnings, *unequal, *one.left_out))
