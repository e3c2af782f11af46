"""What runs said of themselves, their warnings and notes, each once with how many runs said it; and
what must be known of a row though no run says it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from robustmd.report.aggregate import Group, seed_of
from robustmd.report.names import some_text
from robustmd.runs.run import Run, constant_of

# A number that stands by itself: not the 8 of "conv8" nor the 5 of "v1.5.2".
_NUMBER = r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w]|\.\d)"

MOST = 50  # a run that we made says fewer
Kind = Literal["warnings", "notes"]


def said(run: Run, kind: Kind) -> list[str]:
    """What one run said, each line once; of more than `MOST` lines the first, and a count."""
    listed = run.summary.get(kind)
    lines = list(dict.fromkeys(map(str, listed if isinstance(listed, list) else [])))
    more = len(lines) - MOST
    return lines if more <= 0 else [*lines[:MOST], f"and {more:,} more {kind}"]


def messages(runs: Sequence[Run], kind: Kind) -> tuple[str, ...]:
    """ "nearly all weight on svhn for 100 iterations up to 215–340 (3 of 5 runs)", in order of
    first appearance.

    Messages that differ in their numbers alone are one message, with the range of each number; the
    names of domains count as words.
    """
    spoken: dict[tuple[str, ...], dict[int, list[list[str]]]] = {}
    for place, run in enumerate(runs):
        for line in said(run, kind):
            words, numbers = _split(line, run.measured)
            spoken.setdefault(words, {}).setdefault(place, []).append(numbers)
    of = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    return tuple(
        f"{_joined(words, [numbers for lines in by_run.values() for numbers in lines])} "
        f"({len(by_run)} of {of})"
        for words, by_run in spoken.items()
    )


def _split(line: str, domains: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """The words between the numbers (one more than there are numbers), and the numbers."""
    longest_first = sorted(filter(None, domains), key=len, reverse=True)
    names = [rf"(?<!\w){re.escape(name)}(?!\w)" for name in longest_first]
    words, numbers, end = [""], [], 0
    for found in re.finditer("|".join([*names, f"({_NUMBER})"]), line):
        words[-1] += line[end : found.start()]
        if found[1] is None:
            words[-1] += found[0]
        else:
            numbers.append(found[0])
            words.append("")
        end = found.end()
    words[-1] += line[end:]
    return tuple(words), numbers


def _joined(words: Sequence[str], numbers: Sequence[Sequence[str]]) -> str:
    """The message again: a number where all agree, else the smallest and the largest."""
    ranges = (sorted(set(column), key=float) for column in zip(*numbers, strict=True))
    shown = [one[0] if len(one) == 1 else f"{one[0]}–{one[-1]}" for one in ranges]
    return words[0] + "".join(a + b for a, b in zip(shown, words[1:], strict=True))


def other_warnings(group: Group) -> tuple[str, ...]:
    """Of seeds that are not in the row, "seed 3 is not in it: diverged after 120 of 1000
    iterations", and of models that predict one class whatever they see."""
    lost = (
        f"seed {seed_of(problem)} is not in it: {problem.reason}" for problem in group.unfinished
    )
    tested = (constant_of(run.summary).get("test", ()) for run in group.runs)
    found = Counter(domain for domains in tested for domain in domains)
    of = f"{len(group.runs)} run{'s' if len(group.runs) > 1 else ''}"
    where = [f"{domain} ({count} of {of})" for domain, count in found.items()]
    constant = [f"predicts one class for every test image of {some_text(where)}"] if where else []
    return (*lost, *constant)
