"""The table in LaTeX: booktabs and nothing else, narrow enough for a page's width at K = 2 and,
since they are summarised, for many domains."""

from itertools import groupby

from robustmd.report.estimate import Estimate
from robustmd.report.names import latex
from robustmd.report.numbers import estimate_texts
from robustmd.report.published import SOURCE
from robustmd.report.quantities import Quantity
from robustmd.report.table import NOT_PRINTED, Row, Table

MEASURES = {
    "train_loss": r"Loss$_\mathrm{Tr}$",
    "train_accuracy": r"Acc$_\mathrm{Tr}$",
    "test_accuracy": r"Acc$_\mathrm{Te}$",
}
_MARKED = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}
_FIRST = 4  # the column of the first number, after method, n and cfg


def to_latex(table: Table) -> str:
    """A `table` environment; compiles in a document that has `\\usepackage{booktabs}`."""
    names, rules = _groups(table)
    if table.is_many:
        names += " & Worst domain"
    align = "r" * len(table.shown) + ("l" if table.is_many else "")
    measures = "".join(f" & {MEASURES[table.columns[j].measure]}" for j in table.shown)
    measures += " & " if table.is_many else ""
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        rf"\centering{_size(len(table.domains))}\setlength{{\tabcolsep}}{{2pt}}",
        rf"\caption{{{latex(table.caption)}}}\smallskip",
        rf"\begin{{tabular}}{{lrr{align}}}",
        r"\toprule",
        rf" & &{names} \\",
        *([rules] if rules else []),
        rf"Method & $n$ & cfg{measures} \\",
        r"\midrule",
        *_body(table),
        r"\bottomrule",
        r"\end{tabular}",
        *_warnings(table),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _groups(table: Table) -> tuple[str, str]:
    """The names above the columns, each over as many as are of it, and the rules below those."""
    names, rules, first = "", "", _FIRST
    for (domain, *_), places in groupby(table.shown, lambda j: _whose(table.columns[j])):
        place, *others = places
        count = 1 + len(others)
        name = latex(table.where(place) if domain else table.where(place).capitalize())
        names += rf" & \multicolumn{{{count}}}{{c}}{{{name}}}" if count > 1 else f" & {name}"
        rules += rf"\cmidrule(lr){{{first}-{first + count - 1}}}" if count > 1 else ""
        first += count
    return names, rules


def _whose(column: Quantity) -> tuple[str | None, str, bool]:
    return column.domain, column.over, column.unseen


def _size(domains: int) -> str:
    """A letter size at which a table of so many domains is no wider than need be."""
    if domains < 3:
        return r"\footnotesize"
    return r"\scriptsize" if domains == 3 else r"\tiny"


def _body(table: Table) -> list[str]:
    places = range(len(table.rows))
    ours = [line for i in places if not table.rows[i].published for line in _row(i, table)]
    theirs = [line for i in places if table.rows[i].published for line in _row(i, table)]
    if not theirs:
        return ours
    width = len(table.shown) + _FIRST - 1
    title = rf"\multicolumn{{{width}}}{{l}}{{\emph{{Published ({latex(SOURCE)})}}}} \\"
    return [*ours, r"\midrule", title, *theirs]


def _row(place: int, table: Table) -> list[str]:
    """A line of means and, where there are several seeds, a smaller one of spreads below it."""
    row: Row = table.rows[place]
    means, spreads = [], []
    small = r"\tiny" if table.is_many else r"\scriptsize"
    for j in table.shown:
        cell, column = row.cells[j], table.columns[j]
        mean, spread = latex(str(cell or NOT_PRINTED)), None
        if isinstance(cell, Estimate):
            mean, spread = estimate_texts(cell, is_loss=column.is_loss, spread=table.spread)
        means.append(_MARKED[table.marks(place, j)] % mean)
        spreads.append("" if spread is None else rf"{{{small}$\pm${spread}}}")
    if table.is_many:
        worst = row.worst_domain  # the name, and below it in how many runs
        means.append(latex(NOT_PRINTED if worst is None else worst.name))
        spreads.append("" if worst is None else latex(worst.count))
    dagger = r"$^\dagger$" if row.warnings else ""
    head = [latex(row.label) + dagger, latex(row.n), latex(row.configured)]
    lines = [" & ".join([*head, *means]) + r" \\"]
    if any(spreads):
        lines.append(" & ".join(["", "", "", *spreads]) + r" \\")
    return lines


def _warnings(table: Table) -> list[str]:
    """What the runs warned of, below the table."""
    if not table.warnings:
        return []
    lines = [latex(line) + "." for line in table.warnings]
    said = " ".join([r"$^\dagger$", *lines])
    return [rf"\par\smallskip\parbox{{\linewidth}}{{\scriptsize\raggedright {said}}}"]
