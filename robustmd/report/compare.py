"""Two outputs trees side by side: do another version or another machine give other numbers? The
comparison, its table, its page, and a summary for a terminal."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from math import isclose
from operator import itemgetter
from pathlib import Path

from robustmd.errors import UserError
from robustmd.report.aggregate import Group, Section, sections
from robustmd.report.estimate import (
    Difference,
    Estimate,
    difference,
    difference_text,
    estimate,
    estimate_cell,
    unpaired_difference,
    value_text,
)
from robustmd.report.names import clean, is_many
from robustmd.report.quantities import (
    Quantity,
    summary_quantities,
    table_quantities,
    unseen_quantities,
)
from robustmd.report.renderers import markdown_templates
from robustmd.report.selection import Selection
from robustmd.report.settings_key import FINGERPRINT
from robustmd.report.sheet import NOTHING, Cell, Field, Sheet, field, make_sheet
from robustmd.runs.reader import collect
from robustmd.runs.run import Run

SAME = 1e-6
NOT_RECORDED = "not recorded"
ENVIRONMENT = ("robustmd", "python", "platform", "cpu", "device", "threads", "git_commit")
_Rows = dict[object, tuple[Section, Group]]


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
    {"device": "cpu", "torch": "2.4.0"}; several values in one text where the runs differ."""

    outputs: Path
    num_runs: int
    num_left_out: int
    environment: Mapping[str, str]


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
    def exceeding(self) -> list[Pairing]:
        return [one for one in self.pairings if one.word == "EXCEEDS"]

    @property
    def environment_differences(self) -> list[tuple[str, str, str]]:
        """(what, in A, in B) where they are not the same."""
        a, b = self.a.environment, self.b.environment
        both = ((k, a.get(k, NOT_RECORDED), b.get(k, NOT_RECORDED)) for k in {**a, **b})
        return [one for one in both if one[1] != one[2]]

    @property
    def summary(self) -> str:
        """The answer in a line: "12 of 40 numbers exceed their spread, 0 are the same …"."""
        same = sum(one.is_same for one in self.pairings)
        unknown = sum(one.spread is None and not one.is_same for one in self.pairings)
        return (
            f"{len(self.exceeding)} of {len(self.pairings)} numbers exceed their spread, {same} "
            f"are the same in every common seed, {unknown} have no spread (too few seeds)"
        )


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
            f"{tree_a.num_runs} and {tree_b.num_runs}); name two folders with the same settings"
        )
    found = [one for key in common for one in _pairings(*rows_a[key], rows_b[key][1])]
    only_a, only_b = (
        tuple(f"{own[key][0].data}: {own[key][1].label}" for key in own if key not in other)
        for own, other in ((rows_a, rows_b), (rows_b, rows_a))
    )
    return TreeComparison(tree_a, tree_b, selection, tuple(found), only_a, only_b)


def _read(outputs: Path, selection: Selection, data: str | None) -> tuple[Tree, _Rows]:
    collection = collect(outputs)
    chosen = [run for run in collection.runs if data is None or run.data == data]
    found, left_out = sections(chosen, selection, collection.problems)
    rows: _Rows = {}
    for section in found:
        for group in section.groups:
            key = section.domains, group.settings.without(FINGERPRINT)
            rows.setdefault(key, (section, group))
    runs = [run for section in found for run in section.runs]
    lost = sum(problem.scope == "run" for problem in (*collection.problems, *left_out))
    return Tree(collection.outputs, len(runs), lost, _environment(runs)), rows


def _environment(runs: Iterable[Run]) -> dict[str, str]:
    """What the runs recorded of the machine and the software, each value once."""
    found: dict[str, set[str]] = {}
    for run in runs:
        packages = run.environment.get("packages")
        recorded = {key: run.environment.get(key) for key in ENVIRONMENT}
        recorded |= packages if isinstance(packages, dict) else {}
        recorded[f"{FINGERPRINT} of {run.data}"] = run.environment.get("data_fingerprint")
        for key, value in recorded.items():
            text = NOT_RECORDED if value is None else clean(str(value))
            found.setdefault(clean(str(key)), set()).add(text)
    return {key: ", ".join(sorted(values)) for key, values in found.items()}


def _pairings(section: Section, a: Group, b: Group) -> Iterator[Pairing]:
    """In the table's columns; of many domains in those that a reader is shown."""
    many = is_many(section.domains)
    quantities = summary_quantities() if many else table_quantities(section.domains)
    for quantity in (*quantities, *unseen_quantities(section.unseen)):
        common = a.beside(b, quantity)
        pairs = common.values()
        is_same = bool(pairs) and all(isclose(x, y, rel_tol=SAME, abs_tol=1e-9) for x, y in pairs)
        if len(pairs) > 1:
            of_a, of_b = [x for x, _ in pairs], [y for _, y in pairs]
            found = difference(y - x for x, y in pairs)
        else:
            of_a, of_b = ([*group.by_seed(quantity).values()] for group in (a, b))
            found = unpaired_difference(of_a, of_b)
        sides = estimate(of_a), estimate(of_b)
        yield Pairing(section.data, a.label, quantity, *sides, (*common,), is_same, found)


def pairings_sheet(found: Iterable[Pairing]) -> Sheet:
    """A row for each configuration and quantity, which a CSV file names in full."""

    def side(letter: str) -> Field:
        def cell(one: Pairing) -> Cell:
            value = one.a if letter == "a" else one.b
            shown = estimate_cell(value, one.quantity.metric)
            return replace(shown, values=(*shown.values, value.n))

        names = (f"{what}_{letter}" for what in ("mean", "std", "n"))
        return field(letter.upper(), cell, *names, kind="number")

    def quantity(one: Pairing) -> Cell:
        return Cell(f"{one.quantity.where} {one.quantity.short}", (one.quantity.name,))

    def mean(one: Pairing) -> Cell:
        value = one.difference.mean
        return Cell(difference_text(one.quantity.metric, value), (value,))

    def spread(one: Pairing) -> Cell:
        value = one.spread
        return Cell(NOTHING if value is None else value_text(one.quantity.metric, value), (value,))

    def n(one: Pairing) -> Cell:
        paired = len(one.seeds) > 1
        text = f"{len(one.seeds)} pairs" if paired else f"{one.a.n} and {one.b.n}"
        return Cell(text, (" ".join(map(str, one.seeds)), "yes" if paired else "no"))

    fields = [
        field(None, lambda one: one.data, "data"),
        field(None, lambda one: one.label, "method"),
        field("quantity", quantity, "quantity"),
        side("a"),
        side("b"),
        field("B − A", mean, "difference", kind="number"),
        field("spread", spread, "spread", kind="number"),
        field("n", n, "common_seeds", "paired"),
        field("verdict", lambda one: one.word, "verdict"),
    ]
    return make_sheet("A against B", found, fields)


def compare_markdown(found: TreeComparison) -> str:
    """The whole page."""
    fields = [field(head, itemgetter(place)) for place, head in enumerate(("what", "A", "B"))]
    environment = make_sheet("what they ran on", found.environment_differences, fields)
    rows = [
        (f"{data}: {label}", pairings_sheet(ones))
        for (data, label), ones in groupby(found.pairings, key=lambda one: (one.data, one.label))
    ]
    template = markdown_templates().get_template("compare.md.j2")
    return template.render(found=found, environment=environment, rows=rows).rstrip("\n") + "\n"


def compare_lines(found: TreeComparison) -> Iterator[str]:
    """For a terminal: the answer, what differs around them, and the numbers that exceed."""
    for name, tree in (("A", found.a), ("B", found.b)):
        yield f"{name}: {tree.outputs} ({tree.num_runs} runs)"
    yield found.summary
    for key, a, b in found.environment_differences:
        yield f"  {key}: A {a}; B {b}"
    shown = pairings_sheet(found.exceeding).body
    for one, (_, cells) in zip(found.exceeding, shown, strict=True):
        name, a, b, difference, spread, n, _ = (text for *_, text in cells)
        numbers = f"A {a}, B {b}, B − A {difference} exceeds {spread} ({n})"
        yield f"  {one.data}, {one.label}, {name}: {numbers}"
    for name, lacking in (("A", found.only_a), ("B", found.only_b)):
        yield from (f"  only in {name}: {line}" for line in lacking)
