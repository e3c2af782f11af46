"""The comparison of two outputs trees: its table, its page, and a summary for a terminal."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from robustmd.report.compare import Pairing, Tree, TreeComparison, exceeding
from robustmd.report.estimate import Estimate
from robustmd.report.numbers import difference_text, estimate_cell, estimate_text
from robustmd.report.renderers import to_markdown
from robustmd.report.sheet import NOTHING, Cell, Sheet, field, make_sheet
from robustmd.report.templating import markdown_templates


def summary(found: TreeComparison) -> str:
    """The answer in a line: "12 of 40 numbers exceed their spread, 0 are the same …"."""
    total = len(found.pairings)
    same = sum(one.is_same for one in found.pairings)
    unknown = sum(one.spread is None and not one.is_same for one in found.pairings)
    return (
        f"{len(exceeding(found.pairings))} of {total} numbers exceed their spread, {same} are the "
        f"same in every common seed, {unknown} have no spread (too few seeds)"
    )


def compare_markdown(found: TreeComparison) -> str:
    """The whole page."""
    return _TEMPLATES.get_template("compare.md.j2").render(found=found).rstrip("\n") + "\n"


def sides(found: TreeComparison) -> tuple[tuple[str, Tree], ...]:
    """What the page calls the two trees."""
    return ("A", found.a), ("B", found.b)


def environment_sheet(found: TreeComparison) -> Sheet:
    """What the trees' runs did not have in common."""
    heads = enumerate(("what", "A", "B"))
    fields = [field(head, itemgetter(place)) for place, head in heads]
    return make_sheet("what they ran on", found.environment_differences, fields)


def row_sheets(found: TreeComparison) -> Iterator[tuple[str, Sheet]]:
    """ "digits: opt" and the quantities of this row."""
    for (data, label), ones in groupby(found.pairings, key=lambda one: (one.data, one.label)):
        yield f"{data}: {label}", pairings_sheet(ones)


def pairings_sheet(found: Iterable[Pairing]) -> Sheet:
    """A row for each configuration and quantity, which a CSV file names in full."""
    fields = [
        field(None, lambda one: one.data, "data"),
        field(None, lambda one: one.label, "method"),
        field("quantity", lambda one: Cell(_quantity(one), (one.quantity.name,)), "quantity"),
        field("A", lambda one: _side(one.a, one), "mean_a", "std_a", "n_a", kind="number"),
        field("B", lambda one: _side(one.b, one), "mean_b", "std_b", "n_b", kind="number"),
        field("B − A", _difference, "difference", kind="number"),
        field("spread", _spread, "spread", kind="number"),
        field("n", _seeds, "common_seeds", "paired"),
        field("verdict", lambda one: one.word, "verdict"),
    ]
    return make_sheet("A against B", found, fields)


def _quantity(one: Pairing) -> str:
    return f"{one.quantity.where} {one.quantity.short}"


def _side(value: Estimate, one: Pairing) -> Cell:
    cell = estimate_cell(value, one.quantity.metric)
    return replace(cell, values=(*cell.values, value.n))


def _difference(one: Pairing) -> Cell:
    mean = one.difference.mean
    return Cell(difference_text(one.quantity.metric, mean), (mean,))


def _spread(one: Pairing) -> Cell:
    if one.spread is None:
        return Cell(NOTHING, (None,))
    text = difference_text(one.quantity.metric, one.spread).removeprefix("+")
    return Cell(text, (one.spread,))


def _seeds(one: Pairing) -> Cell:
    """ "3 pairs"; "2 and 5" where they are not paired."""
    text = f"{len(one.seeds)} pairs" if one.is_paired else f"{one.a.n} and {one.b.n}"
    return Cell(text, (" ".join(map(str, one.seeds)), "yes" if one.is_paired else "no"))


def compare_lines(found: TreeComparison) -> Iterator[str]:
    """For a terminal: the answer, what differs around them, and the numbers that exceed."""
    yield from (f"{name}: {tree.outputs} ({tree.num_runs} runs)" for name, tree in sides(found))
    yield summary(found)
    for key, a, b in found.environment_differences:
        yield f"  {key}: A {a}; B {b}"
    for one in exceeding(found.pairings):
        where = f"{one.data}, {one.label}, {_quantity(one)}"
        a, b = (estimate_text(side, one.quantity.metric) for side in (one.a, one.b))
        difference, spread, n = _difference(one).text, _spread(one).text, _seeds(one).text
        yield f"  {where}: A {a}, B {b}, B − A {difference} exceeds {spread} ({n})"
    for name, lacking in (("A", found.only_a), ("B", found.only_b)):
        yield from (f"  only in {name}: {line}" for line in lacking)


_TEMPLATES = markdown_templates(sides, summary, environment_sheet, row_sheets, to_markdown)
