"""The comparison of two outputs trees as Markdown, CSV and a summary for a terminal."""

import csv
import io
from collections.abc import Iterator
from itertools import groupby

from robustmd.report.compare import Pairing, Tree, TreeComparison, exceeding
from robustmd.report.names import clean, markdown
from robustmd.report.numbers import difference_text, estimate_text
from robustmd.report.table import heading

CAPTION = (
    "B − A for every row that both have. A, B: mean ± sample standard deviation, over the common "
    "seeds where there are at least two, else over all of each. Spread: half width of the "
    "difference's 95 % interval, paired by seed where at least two are common, else Welch's. "
    "EXCEEDS: |B − A| is larger than it. Every comparison stands for itself: of those between "
    "equals, one in twenty exceeds."
)


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
    lines = ["# A against B\n", *(_side(name, tree) for name, tree in _sides(found))]
    lines.append(f"\n**{summary(found)}.** Every value is of {found.selection.words}.\n")
    lines.append("## What they ran on\n")
    rows = found.environment_differences
    if rows:
        lines += ["| | A | B |", "| --- | --- | --- |"]
        lines += ["| " + " | ".join(map(markdown, row)) + " |" for row in rows]
    else:
        lines.append("The same versions, machine, device and threads, as far as recorded.")
    lines += ["\n## Differences\n", f"{CAPTION}\n"]
    for (data, label), ones in groupby(found.pairings, key=lambda one: (one.data, one.label)):
        lines += [f"### {markdown(data)}: {markdown(label)}\n", *_rows(list(ones)), ""]
    for name, lacking in (("A", found.only_a), ("B", found.only_b)):
        if lacking:
            lines += [f"## Only in {name}\n", *(f"- {markdown(line)}" for line in lacking), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _sides(found: TreeComparison) -> tuple[tuple[str, Tree], ...]:
    return ("A", found.a), ("B", found.b)


def _side(name: str, tree: Tree) -> str:
    runs = f"{tree.num_runs} finished runs, {tree.num_left_out} left out"
    return f"- {name}: {markdown(str(tree.outputs))}, {runs}"


def _rows(ones: list[Pairing]) -> Iterator[str]:
    yield "| quantity | A | B | B − A | spread | n | |"
    yield "| --- | ---: | ---: | ---: | ---: | --- | --- |"
    for one in ones:
        cells = [markdown(heading(one.quantity)), *_numbers(one), _n(one), one.word]
        yield "| " + " | ".join(cells) + " |"


def _numbers(one: Pairing) -> tuple[str, str, str, str]:
    is_loss = one.quantity.is_loss
    a, b = (estimate_text(side, is_loss=is_loss) for side in (one.a, one.b))
    spread = "–"
    if one.spread is not None:
        spread = difference_text(one.spread, is_loss=is_loss).removeprefix("+")
    return a, b, difference_text(one.difference.mean, is_loss=is_loss), spread


def _n(one: Pairing) -> str:
    """ "3 pairs"; "2 and 5" where they are not paired."""
    return f"{len(one.seeds)} pairs" if one.is_paired else f"{one.a.n} and {one.b.n}"


def compare_csv(found: TreeComparison) -> str:
    """Every number with every digit; a field is empty where the number does not exist."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = (
        "data,method,quantity,mean_a,std_a,n_a,mean_b,std_b,n_b,difference,spread,common_seeds,"
        "paired,verdict"
    )
    writer.writerow(head.split(","))
    for one in found.pairings:
        sides = [x for s in (one.a, one.b) for x in (s.mean, "" if s.std is None else s.std, s.n)]
        spread = "" if one.spread is None else one.spread
        numbers = [*sides, one.difference.mean, spread, " ".join(map(str, one.seeds))]
        names = [one.data, one.label, clean(one.quantity.name)]
        writer.writerow([*names, *numbers, "yes" if one.is_paired else "no", one.word])
    return out.getvalue()


def compare_lines(found: TreeComparison) -> Iterator[str]:
    """For a terminal: the answer, what differs around them, and the numbers that exceed."""
    yield from (f"{name}: {tree.outputs} ({tree.num_runs} runs)" for name, tree in _sides(found))
    yield summary(found)
    for key, a, b in found.environment_differences:
        yield f"  {key}: A {a}; B {b}"
    for one in exceeding(found.pairings):
        a, b, difference, spread = _numbers(one)
        where = f"{one.data}, {one.label}, {heading(one.quantity)}"
        yield f"  {where}: A {a}, B {b}, B − A {difference} exceeds {spread} ({_n(one)})"
    for name, lacking in (("A", found.only_a), ("B", found.only_b)):
        yield from (f"  only in {name}: {line}" for line in lacking)
