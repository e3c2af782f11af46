"""The fair protocol: every method at the configuration that its validation split chose, each seed
for itself.

It is read from what the runs are: those that have a validation split and agree in data, backbone
and training but for what may be tuned. The test set chooses nothing.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SpreadKind
from robustmd.report.paired import Comparison, comparisons, paired_sheet
from robustmd.report.quantities import Quantity
from robustmd.report.selection import Selection
from robustmd.report.settings_key import Settings
from robustmd.report.sheet import Cell, Field, Sheet, field, make_sheet
from robustmd.report.table import Row, Table, build_table
from robustmd.report.tuning import (
    PRIOR,
    Choice,
    Try,
    Tuned,
    has_contest,
    pools_of,
    tries_of,
    tuned,
)

ABOUT = (
    "The fair protocol: of the cfg configurations of a method, every seed takes the one with the "
    "smallest worst-case validation loss, and that run alone is in the row. "
)
SHARED = (
    "on the same data with the same budget, each in the configuration that this seed's validation "
    "split chose for it"
)


@dataclass(frozen=True)
class Fair:
    """`methods` are in the table, `references` (individual models) in the budget alone; `others`
    counts runs with a validation split on other ground, which are in neither."""

    methods: tuple[Tuned, ...]
    references: tuple[Tuned, ...]
    table: Table
    comparisons: tuple[Comparison, ...]
    others: int

    @property
    def paired(self) -> Sheet:
        """The differences to the baseline under the protocol."""
        found = paired_sheet(self.comparisons, self.table.selection, SHARED)
        return replace(found, name=f"{found.name} under the fair protocol")

    @property
    def sheets(self) -> list[Sheet]:
        """All that a reader is shown: the results, what they cost, and the differences."""
        return [self.table.sheet, budget_sheet(self), *([self.paired] if self.comparisons else [])]


def fair(section: Section, selection: Selection, spread: SpreadKind) -> Fair | None:
    """The protocol's table, where at least two mixture methods have two configurations or more with
    a validation split on the same ground; of several grounds the one with the most runs.

    Args:
        section: made with `selection`, which also says which measurements a run is chosen by.
        selection: the rule for every row.
        spread: what stands behind ±.
    """
    tries = list(tries_of(section))
    grounds: dict[Settings, list[Try]] = defaultdict(list)
    for one in tries:
        grounds[one.ground].append(one)
    found = [pools for members in grounds.values() if has_contest(pools := pools_of(members))]
    pools = max(found, key=lambda one: sum(map(len, one.values())), default={})
    budgets = {key: tuned(pool) for key, pool in pools.items()}
    mixtures = {key: one for key, one in budgets.items() if key[1] is None}
    chosen = {key: one for key, one in mixtures.items() if one.choices}
    if not chosen:
        return None
    ground = next(iter(pools.values()))[0].ground
    groups = tuple(_group(one, ground, key[2]) for key, one in chosen.items())
    own = replace(section, groups=groups, unfinished=())
    return Fair(
        tuple(mixtures.values()),
        tuple(one for key, one in budgets.items() if key not in mixtures),
        _table(own, tuple(chosen.values()), selection, spread),
        comparisons(own),
        len(tries) - sum(map(len, pools.values())),
    )


def _group(one: Tuned, ground: Settings, prior: Any) -> Group:
    """A row of chosen runs. Its settings are the ground, so that it pairs with even's."""
    settings = Settings({**ground, "method.name": one.method, PRIOR: prior})
    selected = tuple(choice.selected for choice in one.choices)
    return Group(one.label, one.method, None, settings, selected, one.configurations)


def _table(
    own: Section, chosen: Sequence[Tuned], selection: Selection, spread: SpreadKind
) -> Table:
    """Our rows of the last models, with what is unlike in their budgets."""
    table = build_table(own, selection, spread)
    rows = {row.label: row for row in table.rows if not row.published}
    most = max(one.configurations for one in chosen)
    kept = tuple(_warned(rows[one.label], one, most) for one in chosen)
    return replace(table, rows=kept, about=ABOUT)


def _warned(row: Row, one: Tuned, most: int) -> Row:
    count = one.configurations
    unequal = [f"{count} configurations, while another method has {most}"] if count < most else []
    return replace(row, warnings=(*row.warnings, *unequal, *one.left_out))


def budget_sheet(found: Fair) -> Sheet:
    """A row a method: what it cost, and what each seed chose."""

    def seconds(one: Tuned) -> Cell:
        return Cell(f"{'' if one.is_complete else '≥ '}{one.seconds:.0f}")

    def chosen(one: Tuned) -> str:
        return "" if one in found.references else chosen_text(one)

    fields = [
        field("method", lambda one: one.label),
        field("cfg", lambda one: one.configurations, kind="number"),
        field("runs", lambda one: one.runs, kind="number"),
        field("not finished", lambda one: one.unfinished, kind="number"),
        field("seconds", seconds, kind="number"),
        field("chosen by worst validation loss", chosen, kind="long"),
    ]
    methods = (*found.methods, *found.references)
    name = "budget and choices of the fair protocol"
    return make_sheet(name, methods, fields, caption=_budget_caption(found))


def _budget_caption(found: Fair) -> str:
    """What the budget counts."""
    several = "; of equals the first" if any(one.choices for one in found.methods) else ""
    text = (
        "Budget of the fair protocol: configurations (cfg), runs over all seeds, those of them "
        "that diverged or did not end, seconds of all from start to end (≥: not every run wrote "
        f"its time down), and what each seed chose{several}. A run that diverged counts as tried."
    )
    if found.references:
        text += " Individual models are not compared: regret takes f* from them."
    if found.others:
        text += (
            f" {found.others} more runs have a validation split and differ in data, backbone or "
            "training: they are not in it."
        )
    return text


def chosen_text(one: Tuned) -> str:
    """ "learning_rate=0.02 λ=1 (seeds 0, 2); learning_rate=0.089 λ=0.47 (seed 1)"."""
    seeds: dict[str, list[str]] = defaultdict(list)
    for choice in one.choices:
        seeds[choice.configuration or "the only one"].append(str(choice.seed))
    said = [
        f"{name} (seed{'s' if len(of) > 1 else ''} {', '.join(of)})" for name, of in seeds.items()
    ]
    return "; ".join([*said, *one.left_out])


def choices_sheet(found: Fair) -> Sheet:
    """For a CSV file, a row a method and seed: the run that was chosen, from how many, and its
    values."""

    def value(column: Quantity) -> Field:
        return field(None, lambda pair: column.of(pair[1].selected), column.name)

    def iterations(pair: tuple[Tuned, Choice]) -> str:
        return " ".join(map(str, pair[1].selected.iterations("val")))

    fields = [
        field(None, lambda pair: pair[0].label, "method"),
        field(None, lambda pair: pair[1].seed, "seed"),
        field(None, lambda pair: pair[1].configuration, "configuration"),
        field(None, lambda pair: pair[0].configurations, "of"),
        field(None, lambda pair: pair[1].val_loss, "worst_val_loss"),
        field(None, lambda pair: pair[1].selected.run.place, "path"),
        field(None, iterations, "iterations"),
        *map(value, found.table.columns),
    ]
    pairs = ((one, choice) for one in found.methods for choice in one.choices)
    return make_sheet("choices of the fair protocol", pairs, fields)
