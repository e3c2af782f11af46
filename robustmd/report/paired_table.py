"""The paired differences to the baseline, as Markdown and CSV."""

import csv
import io
from collections.abc import Sequence

from robustmd.report.aggregate import BASELINES
from robustmd.report.names import clean, markdown
from robustmd.report.paired import Comparison
from robustmd.report.selection import Selection

ALIKE = "both trained on the same data in the same way"


def paired_caption(baseline: str, selection: Selection, how: str = ALIKE) -> str:
    """What the numbers are, and the rule behind the word. `how`: what a pair shares."""
    known = clean(baseline)
    return (
        f"Paired by seed: method − {known}, {how}; {_why(known)}every "
        f"value is of {selection.words}. Mean of the differences, 95 % t interval, exact paired "
        "permutation p (two-sided; Holm: adjusted over this table; none below n = 6), n = number "
        "of seeds both have. Equivalent: the interval lies inside ±0.5 points, where one test "
        f"image (the resolution) is less than that, or ±5 % of {known}'s loss. Better or worse: it "
        "excludes 0 at 98.3 % too (three quantities are looked at, 5 % for all of them) and, "
        "where there is a p, p ≤ 0.05. Undecided: anything else, and n < 3. "
        "Training loss: smaller is better; accuracy: larger."
    )


def _why(baseline: str) -> str:
    """What is said where it is not even that the methods are compared with."""
    if baseline == BASELINES[0]:
        return ""
    return f"{baseline} is what --baseline asks for, or the first of {', '.join(BASELINES)} here; "


def paired_markdown(found: Sequence[Comparison], selection: Selection, how: str = ALIKE) -> str:
    """A pipe table of one or more comparisons under its caption."""
    baseline = found[0].baseline
    lines = [
        f"{markdown(paired_caption(baseline, selection, how))}\n",
        f"| method − {markdown(baseline)} | quantity | difference | 95 % interval | p | n | |",
        "| --- | --- | ---: | ---: | --- | ---: | --- |",
    ]
    for one in found:
        names = markdown(f"{one.method} − {one.reference}"), markdown(one.what)
        numbers = f"{one.mean_text} {one.unit}", one.interval_text, one.p_text
        cells = (*names, *numbers, str(one.difference.n), one.said)
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
        writer.writerow([*names, *numbers, one.reference_mean, one.margin, one.word])
    return out.getvalue()
