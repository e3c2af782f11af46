"""Two outputs trees side by side: do another version or another machine give other numbers?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

from robustmd.errors import UserError
from robustmd.report.aggregate import Group, Section, sections
from robustmd.report.estimate import Estimate, estimate
from robustmd.report.names import clean, is_many
from robustmd.report.quantities import (
    Quantity,
    summary_quantities,
    table_quantities,
    unseen_quantities,
)
from robustmd.report.selection import Selection
from robustmd.report.settings_key import FINGERPRINT, UNSET, differing, frozen
from robustmd.report.verdict import Difference, difference, unpaired_difference
from robustmd.runs.reader import collect
from robustmd.runs.run import Run

SAME = 1e-6
NOT_RECORDED = "not recorded"
ENVIRONMENT = ("robustmd", "python", "platform", "cpu", "device", "threads", "git_commit")


@dataclass(frozen=True)
class Pairing:
    """One configuration's quantity in both trees; losses in nats, accuracies in percent.

    `difference` is B − A with its 95 % interval: paired over the common `seeds` where there are at
    least two, else Welch's over all seeds, else without one; `a` and `b` are over the same seeds.
    `is_same`: in every common seed, of which there is one, the numbers agree to six digits, as
    they do where sums were taken in another order.
    """

    data: str
    label: str
    quantity: Quantity
    a: Estimate
    b: Estimate
    seeds: tuple[int, ...]
    is_same: bool
    difference: Difference

    @property
    def is_paired(self) -> bool:
        return len(self.seeds) > 1

    @property
    def spread(self) -> float | None:
        """Half width of the interval: what the difference is held against."""
        interval = self.difference.interval
        return None if interval is None else (interval[1] - interval[0]) / 2

    @property
    def word(self) -> str:
        """Whether |B − A| exceeds its spread."""
        if self.is_same:
            return "the same"
        if self.spread is None:
            return "no spread: too few seeds"
        return "EXCEEDS" if abs(self.difference.mean) > self.spread else "within"


@dataclass(frozen=True)
class Tree:
    """One outputs folder: how many finished runs, how many left out, and what they ran on, as
    {"device": ("cpu",), "torch": ("2.4.0",)}; several values where the runs differ."""

    outputs: Path
    num_runs: int
    num_left_out: int
    environment: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class TreeComparison:
    """A against B, in the order of A's tables; `only_a` and `only_b` name the rows, and the data
    sets, that the other tree lacks."""

    a: Tree
    b: Tree
    selection: Selection
    pairings: tuple[Pairing, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    @property
    def environment_differences(self) -> list[tuple[str, str, str]]:
        """(what, in A, in B) where they are not the same."""
        keys = dict.fromkeys((*self.a.environment, *self.b.environment))
        both = ((k, _joined(self.a.environment, k), _joined(self.b.environment, k)) for k in keys)
        return [(key, a, b) for key, a, b in both if a != b]


def compare_trees(
    a: Path, b: Path, selection: Selection, data: str | None = None
) -> TreeComparison:
    """Reads both trees and pairs rows of equal data set, domains and settings; the bytes of the
    data may differ, and are named with the environment.

    Raises `UserError` where one is no folder, or they have no row in common.
    """
    tree_a, rows_a = _read(a, selection, data)
    tree_b, rows_b = _read(b, selection, data)
    common = [key for key in rows_a if key in rows_b]
    if not common:
        raise UserError(
            f"--compare {a} {b}: no configuration has finished runs in both (they have "
            f"{tree_a.num_runs} and {tree_b.num_runs}){_closest(rows_a, rows_b)}; name two folders "
            "with the same settings"
        )
    found = [one for key in common for one in _pairings(*rows_a[key], rows_b[key][1])]
    lacking = (
        tuple(_name(*own[key]) for key in own if key not in other)
        for own, other in ((rows_a, rows_b), (rows_b, rows_a))
    )
    return TreeComparison(tree_a, tree_b, selection, tuple(found), *lacking)


_Rows = dict[object, tuple[Section, Group]]


def _read(outputs: Path, selection: Selection, data: str | None) -> tuple[Tree, _Rows]:
    collection = collect(outputs)
    chosen = [run for run in collection.runs if data is None or run.data == data]
    found, left_out = sections(chosen, selection, collection.problems)
    rows: _Rows = {}
    for section in found:
        for group in section.groups:
            settings = {k: v for k, v in group.settings.items() if k != FINGERPRINT}
            rows.setdefault((section.domains, frozen(settings)), (section, group))
    runs = [run for section in found for run in section.runs]
    lost = sum(problem.scope == "run" for problem in (*collection.problems, *left_out))
    return Tree(collection.outputs, len(runs), lost, _environment(runs)), rows


def _closest(rows_a: _Rows, rows_b: _Rows) -> str:
    """The two rows of one method that differ in the fewest settings, and in what."""
    found = [
        (differing([a.settings, b.settings]), a, b)
        for _, a in rows_a.values()
        for _, b in rows_b.values()
        if (a.method, a.domain) == (b.method, b.domain)
    ]
    if not found:
        return ""
    keys, a, b = min(found, key=lambda one: len(one[0]))
    values = (f"{k} {a.settings.get(k, UNSET)} and {b.settings.get(k, UNSET)}" for k in keys)
    return clean(f"; the closest, {a.label}, differ in {', '.join(values) or 'their domains'}")


def _environment(runs: Iterable[Run]) -> dict[str, tuple[str, ...]]:
    """What the runs recorded of the machine and the software, each value once."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        recorded: dict[str, Any] = {key: run.environment.get(key) for key in ENVIRONMENT}
        packages = run.environment.get("packages")
        recorded |= packages if isinstance(packages, dict) else {}
        recorded[f"{FINGERPRINT} of {run.data}"] = run.environment.get("data_fingerprint")
        for key, value in recorded.items():
            text = NOT_RECORDED if value is None else clean(str(value))
            found.setdefault(clean(str(key)), {})[text] = None
    return {key: tuple(sorted(values)) for key, values in found.items()}


def _joined(environment: Mapping[str, tuple[str, ...]], key: str) -> str:
    return ", ".join(environment.get(key, (NOT_RECORDED,)))


def _pairings(section: Section, a: Group, b: Group) -> list[Pairing]:
    """In the table's columns; of many domains in those that a reader is shown."""
    many = is_many(section.domains)
    quantities = summary_quantities() if many else table_quantities(section.domains)
    every = (*quantities, *unseen_quantities(section.unseen))
    return [_pairing(section, a, b, quantity) for quantity in every]


def _pairing(section: Section, a: Group, b: Group, quantity: Quantity) -> Pairing:
    common = a.beside(b, quantity)
    pairs = common.values()
    is_same = bool(pairs) and all(isclose(x, y, rel_tol=SAME, abs_tol=1e-9) for x, y in pairs)
    if len(pairs) > 1:
        of_a, of_b = [x for x, _ in pairs], [y for _, y in pairs]
        found = difference(y - x for x, y in pairs)
    else:
        of_a, of_b = ([*group.by_seed(quantity).values()] for group in (a, b))
        found = unpaired_difference(of_a, of_b)
    names = section.data, a.label, quantity
    return Pairing(*names, estimate(of_a), estimate(of_b), (*common,), is_same, found)


def _name(section: Section, group: Group) -> str:
    return f"{section.data}: {group.label}"


def exceeding(found: Sequence[Pairing]) -> list[Pairing]:
    """Those whose difference exceeds its spread."""
    return [one for one in found if one.word == "EXCEEDS"]
