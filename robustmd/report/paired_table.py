"""The paired differences to even, as Markdown and CSV."""

import csv
import io
from collections.abc import Sequence

from robustmd.report.names import markdown
from robustmd.report.paired import Comparison
from robustmd.report.selection import Selection

ALIKE = "both trained on the same data in the same way"


def paired_caption(selection: Selection, how: str = ALIKE) -> str:
    """What the numbers are, and the rule behind the word. `how`: what a pair shares."""
    return (
        f"Paired by seed: method − even, {how}; every "
        f"value is of {selection.words}. Mean of the differences, 95 % t interval, exact paired "
        "permutation p (two-sided; Holm: adjusted over this table; none below n = 6), n = number "
        "of seeds both have. Equivalent: the interval lies inside ±0.5 points, or ±5 % of even's "
        "loss. Better or worse: it excludes 0 at 98.3 % too (three quantities are looked at, 5 % "
        "for all of them) and, where there is a p, p ≤ 0.05. Undecided: anything else, and n < 3. "
        "Training loss: smaller is better; accuracy: larger."
    )


def paired_markdown(found: Sequence[Comparison], selection: Selection, how: str = ALIKE) -> str:
    """A pipe table under its caption."""
    lines = [
        f"{markdown(paired_caption(selection, how))}\n",
        "| method − even | quantity | difference | 95 % interval | p | n | |",
        "| --- | --- | ---: | ---: | --- | ---: | --- |",
    ]
    for one in found:
        names = markdown(f"{one.method} − {one.reference}"), markdown(one.what)
        numbers = f"{one.mean_text} {one.unit}", one.interval_text, one.p_text
        cells = (*names, *numbers, str(one.difference.n), one.word)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def paired_csv(found: Sequence[Comparison]) -> str:
    """The same with every digit; a field is empty where the number does not exist."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = (
        "method,reference,quantity,unit,difference,ci95_low,ci95_high,p,p_holm,n,seeds,"
        "reference_mean,margin,verdict"
    )
    writer.writerow(head.split(","))
    for one in found:
        interval = one.difference.interval or ("", "")
        tested = ["" if p is None else p for p in (one.p, one.p_holm)]
        seeds = " ".join(map(str, one.seeds))
        names = [one.method, one.reference, one.what, one.unit]
        numbers = [one.difference.mean, *interval, *tested, one.difference.n, seeds]
        writer.writerow([*names, *numbers, one.even, one.margin, one.word])
    return out.getvalue()
