"""The verdict in a sentence, and the line that says how its numbers came about."""

from collections.abc import Sequence

from robustmd.report.estimate import SPREAD_WORDS
from robustmd.report.figures.running_time import seconds_text
from robustmd.report.paired import Comparison
from robustmd.report.quantities import WORST_TEST_ACCURACY
from robustmd.report.result import SectionReport

NAMED = 4  # methods of one verdict that are named
ORDER = ("better", "equivalent", "undecided", "worse")


def gains(one: SectionReport) -> list[Comparison]:
    """The comparisons to the baseline in worst test accuracy."""
    return [found for found in one.comparisons if found.quantity == WORST_TEST_ACCURACY]


def verdict(one: SectionReport) -> str:
    """ "Worst test accuracy against even: better: opt (+6.56 points); undecided: kl (+0.20)." Every
    method that was compared counts, not the best of them."""
    found = gains(one)
    if not found:
        return (
            f"No verdict: it needs {one.section.baseline} and another mixture, trained in the same "
            "way, with a seed in common."
        )
    said = []
    for word in ORDER:
        those = [c for c in found if c.word == word]
        if those:
            names = [_named(c) for c in those]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            said.append(f"{word}: {', '.join(names[:NAMED])}{more}")
    return f"Worst test accuracy against {one.section.baseline}: {'; '.join(said)}."


def _named(one: Comparison) -> str:
    """ "opt (+6.56 points, n = 3)", and what keeps it undecided."""
    why = one.said.removeprefix(one.word).removeprefix(":")
    return f"{one.method} ({one.mean_text} points, n = {one.difference.n}{why and f',{why}'})"


def protocol(one: SectionReport) -> str:
    """n, selection, what ± is, device and compute."""
    counts = sorted({len(group.runs) for group in one.section.groups})
    n = _range(counts)
    devices = ", ".join(sorted({row.device for row in one.compute}))
    at_least = "" if all(row.is_complete for row in one.compute) else "at least "
    runs = sum(row.runs for row in one.compute)
    spent = seconds_text(sum(row.seconds for row in one.compute))
    spread = SPREAD_WORDS[one.table.spread] if counts[-1] > 1 else "none (n = 1)"
    return (
        f"n = {n} seed{'s' if counts[-1] > 1 else ''} a row. Numbers are of "
        f"{one.table.selection.words}. ±: {spread}. Intervals: 95 % t, paired by seed. "
        f"Device: {devices}. Compute: {at_least}{spent} in {runs} runs, unfinished ones included."
    )


def _range(counts: Sequence[int]) -> str:
    return "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
