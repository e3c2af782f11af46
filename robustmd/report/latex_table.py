"""The table in LaTeX: booktabs and nothing else, narrow enough for a page's width at K = 2."""

from robustmd.report.estimate import Estimate
from robustmd.report.names import latex
from robustmd.report.numbers import estimate_texts
from robustmd.report.published import SOURCE
from robustmd.report.table import NOT_PRINTED, Row, Table

MEASURES = {
    "train_loss": r"Loss$_\mathrm{Tr}$",
    "train_accuracy": r"Acc$_\mathrm{Tr}$",
    "test_accuracy": r"Acc$_\mathrm{Te}$",
}


def to_latex(table: Table) -> str:
    """A `table` environment; compiles in a document that has `\\usepackage{booktabs}`."""
    headings = (*map(latex, table.domains), "Worst")
    groups = "".join(rf" & \multicolumn{{3}}{{c}}{{{name}}}" for name in headings)
    rules = "".join(rf"\cmidrule(lr){{{3 * i + 3}-{3 * i + 5}}}" for i in range(len(headings)))
    measures = "".join(f" & {MEASURES[column.measure]}" for column in table.columns)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\footnotesize\setlength{\tabcolsep}{2pt}",
        rf"\caption{{{latex(table.caption)}}}\smallskip",
        rf"\begin{{tabular}}{{lr{'rrr' * len(headings)}}}",
        r"\toprule",
        rf" & {groups} \\",
        rules,
        rf"Method & $n${measures} \\",
        r"\midrule",
        *_body(table),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _body(table: Table) -> list[str]:
    ours = [line for row in table.rows if not row.published for line in _row(row, table)]
    theirs = [line for row in table.rows if row.published for line in _row(row, table)]
    if not theirs:
        return ours
    width = len(table.columns) + 2
    title = rf"\multicolumn{{{width}}}{{l}}{{\emph{{Published ({latex(SOURCE)})}}}} \\"
    return [*ours, r"\midrule", title, *theirs]


def _row(row: Row, table: Table) -> list[str]:
    """A line of means and, where there are several seeds, a smaller one of spreads below it."""
    means, spreads = [], []
    for cell, column in zip(row.cells, table.columns, strict=True):
        if isinstance(cell, Estimate):
            mean, spread = estimate_texts(cell, is_loss=column.is_loss)
        else:
            mean, spread = latex(cell or NOT_PRINTED), None
        means.append(mean)
        spreads.append("" if spread is None else rf"{{\scriptsize$\pm${spread}}}")
    lines = [" & ".join([latex(row.label), latex(row.n), *means]) + r" \\"]
    if any(spreads):
        lines.append(" & ".join(["", "", *spreads]) + r" \\")
    return lines
