"""The fair protocol: every method at the configuration that its validation split chose, each seed
for itself.

It is read from what the runs are: those that have a validation split and agree in data, backbone
and training but for what may be tuned. The test set chooses nothing.
"""

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustmd.report.aggregate import Group, Section
from robustmd.report.compute import total_seconds
from robustmd.report.estimate import SpreadKind
from robustmd.report.names import clean
from robustmd.report.paired import Comparison, comparisons
from robustmd.report.selection import Selected, Selection
from robustmd.report.settings_key import FINGERPRINT, Settings, describe, differing, settings_of
from robustmd.report.table import AVERAGED, Row, Table, build_table
from robustmd.runs.run import Run

# What a configuration of a method may choose beside the method's own keys; all else is the ground
# that the methods share.
TUNED = ("training.learning_rate", "training.momentum", "training.weight_decay")
DERIVED = ("method.reference", "method.weights")  # taken from other runs: no choice of anybody
PRIOR = "method.prior"  # part of the problem: other weights are another method
Key = tuple[tuple[str, Any], ...]


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


@dataclass(frozen=True)
class _Try:
    """A run of one configuration; `selected` is None where it is not finished."""

    run: Run
    settings: Settings
    selected: Selected | None

    @property
    def ground(self) -> Key:
        apart = ("method.", "evaluation.")
        own = (*TUNED, FINGERPRINT)
        kept = {k: v for k, v in self.settings.items() if k not in own and not k.startswith(apart)}
        return tuple(sorted(kept.items()))

    @property
    def pool(self) -> tuple[str, str | None, Any]:
        """Whose budget it is in: a method's, with its prior and (Individual) its domain."""
        return self.run.method, self.run.domain, self.settings.get(PRIOR)

    @property
    def configuration(self) -> Key:
        return tuple(sorted((key, self.settings.get(key)) for key in _tunable(self.settings)))

    @property
    def was_tried(self) -> bool:
        """A run that diverged has had its chance; one that was cut off has not."""
        return self.selected is not None or self.run.status == "diverged"


def fair(section: Section, selection: Selection, spread: SpreadKind) -> Fair | None:
    """The protocol's table, where at least two mixture methods have two configurations or more with
    a validation split on the same ground; of several grounds the one with the most runs.

    Args:
        section: made with `selection`, which also says which measurements a run is chosen by.
        selection: the rule for every row.
        spread: what stands behind ±.
    """
    tries = list(_tries(section))
    grounds: dict[Key, list[_Try]] = defaultdict(list)
    for one in tries:
        grounds[one.ground].append(one)
    found = [list(_of_same_bytes(members)) for members in grounds.values()]
    found = [members for members in found if _has_contest(members)]
    if not found:
        return None
    members = max(found, key=len)
    pools: dict[Any, list[_Try]] = defaultdict(list)
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


def _tries(section: Section) -> Iterable[_Try]:
    """Runs with a validation split, by row; of two with one configuration and seed the first."""
    for group in section.groups:
        for one in group.selected:
            if "val" in one.splits:
                yield _Try(one.run, group.settings, one)
    for problem in section.unfinished:
        if problem.run is not None:
            settings = settings_of(problem.run)
            share = settings.get("data.validation")
            if isinstance(share, float) and share > 0:
                yield _Try(problem.run, settings, None)


def _of_same_bytes(members: Sequence[_Try]) -> Iterable[_Try]:
    """Those that read what most of them read; unfinished runs may not have written it down."""
    read = Counter(one.settings.get(FINGERPRINT) for one in members if one.selected is not None)
    if not read:
        return ()
    most = read.most_common(1)[0][0]
    return (one for one in members if one.selected is None or one.settings[FINGERPRINT] == most)


def _has_contest(members: Sequence[_Try]) -> bool:
    by_pool: dict[Any, set[Key]] = defaultdict(set)
    for one in members:
        if one.run.domain is None:
            by_pool[one.pool].add(one.configuration)
    return sum(len(configurations) > 1 for configurations in by_pool.values()) > 1


def _tunable(settings: Settings) -> list[str]:
    own = (key for key in settings if key.startswith("method.") and key not in DERIVED)
    return [*TUNED, *own]


def _tuned(pool: Sequence[_Try]) -> Tuned:
    """The budget of one method and the choice of every seed that had all of it."""
    configurations = list(dict.fromkeys(one.configuration for one in pool))
    varying = differing(one.settings for one in pool)
    keys = [key for key in _tunable(pool[0].settings) if key in varying]
    by_seed: dict[int, dict[Key, _Try]] = defaultdict(dict)
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


def _best(tried: Mapping[Key, _Try], keys: Sequence[str]) -> Choice | None:
    """argmin over configurations of max_k f_k on the validation split; of equals the first."""
    found = [
        Choice(one.selected, clean(describe(one.settings, keys)), one.selected.worst_loss("val"))
        for _, one in sorted(tried.items(), key=lambda item: str(item[0]))
        if one.selected is not None
    ]
    known = [one for one in found if math.isfinite(one.val_loss)]
    return min(known, key=lambda one: one.val_loss, default=None)


def _group(one: Tuned, like: _Try, prior: Any) -> Group:
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
