"""The fair protocol's table, budget, choices and differences, as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Iterator

from robustmd.report.fair import Fair, Tuned
from robustmd.report.latex_table import to_latex
from robustmd.report.names import clean, latex, markdown
from robustmd.report.paired_table import paired_markdown
from robustmd.report.table_formats import to_csv, to_markdown

PAIRED = (
    "on the same data with the same budget, each in the configuration that this seed's validation "
    "split chose for it"
)
BUDGET_HEAD = (
    "method",
    "cfg",
    "runs",
    "not finished",
    "seconds",
    "chosen by worst validation loss",
)


def fair_markdown(fair: Fair) -> str:
    """Table, budget and choices, paired differences."""
    parts = [to_markdown(fair.table), markdown(budget_caption(fair)) + "\n"]
    lines = [" | ".join(BUDGET_HEAD), "--- | ---: | ---: | ---: | ---: | ---"]
    lines += [" | ".join(map(markdown, row)) for row in budget_rows(fair)]
    parts.append("\n".join(f"| {line} |" for line in lines) + "\n")
    if fair.comparisons:
        parts.append(paired_markdown(fair.comparisons, fair.table.selection, PAIRED))
    return "\n".join(parts)


def fair_latex(fair: Fair) -> str:
    """Two `table` environments: the results, and what they cost."""
    rows = [" & ".join(map(latex, row)) + r" \\" for row in budget_rows(fair)]
    lines = [
        r"\begin{table}",
        r"\centering\scriptsize\setlength{\tabcolsep}{2pt}",
        rf"\caption{{{latex(budget_caption(fair))}}}\smallskip",
        r"\begin{tabular}{lrrrrp{0.5\linewidth}}",
        r"\toprule",
        " & ".join(map(latex, BUDGET_HEAD)) + r" \\",
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return to_latex(fair.table) + "\n" + "\n".join(lines) + "\n"


def fair_csv(fair: Fair) -> str:
    """The table with every digit."""
    return to_csv(fair.table)


def choices_csv(fair: Fair) -> str:
    """One line a method and seed: the run that was chosen, from how many, and its values."""
    columns = fair.table.columns
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [clean(column.name) for column in columns]
    head = ["method", "seed", "configuration", "of", "worst_val_loss", "path", "iterations"]
    writer.writerow([*head, *names])
    for one in fair.methods:
        for choice in one.choices:
            run = choice.selected.run
            writer.writerow(
                [
                    one.label,
                    choice.seed,
                    choice.configuration,
                    one.configurations,
                    choice.val_loss,
                    clean(run.path.relative_to(run.root).as_posix()),
                    " ".join(map(str, choice.selected.iterations("val"))),
                    *(column.of(choice.selected) for column in columns),
                ]
            )
    return out.getvalue()


def budget_caption(fair: Fair) -> str:
    """What the budget counts."""
    several = "; of equals the first" if any(one.choices for one in fair.methods) else ""
    text = (
        "Budget of the fair protocol: configurations (cfg), runs over all seeds, those of them "
        "that diverged or did not end, seconds of all from start to end (≥: not every run wrote "
        f"its time down), and what each seed chose{several}. A run that diverged counts as tried."
    )
    if fair.references:
        text += " Individual models are not compared: regret takes f* from them."
    if fair.others:
        text += (
            f" {fair.others} more runs have a validation split and differ in data, backbone or "
            "training: they are not in it."
        )
    return text


def budget_rows(fair: Fair) -> Iterator[tuple[str, ...]]:
    """A row a method, as `BUDGET_HEAD`."""
    for one in (*fair.methods, *fair.references):
        at_least = "" if one.is_complete else "≥ "
        counts = (one.configurations, one.runs, one.unfinished)
        chosen = "" if one in fair.references else chosen_text(one)
        yield (one.label, *map(str, counts), f"{at_least}{one.seconds:.0f}", chosen)


def chosen_text(one: Tuned) -> str:
    """ "learning_rate=0.02 λ=1 (seeds 0, 2); learning_rate=0.089 λ=0.47 (seed 1)"."""
    seeds: dict[str, list[str]] = {}
    for choice in one.choices:
        seeds.setdefault(choice.configuration or "the only one", []).append(str(choice.seed))
    said = [
        f"{name} (seed{'s' if len(of) > 1 else ''} {', '.join(of)})" for name, of in seeds.items()
    ]
    return "; ".join([*said, *one.left_out])
