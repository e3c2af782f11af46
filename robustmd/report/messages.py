"""What runs said of themselves, their warnings and notes, each once with how many runs said it; and
what must be known of a row though no run says it."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal

from robustmd.report.aggregate import Group, seed_of
from robustmd.report.names import some_text
from robustmd.runs.run import Run, constant_of

# A number that stands by itself: not the 8 of "conv8" nor the 5 of "v1.5.2".
_NUMBER = r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w]|\.\d)"

MOST = 50  # a run that we made says fewer
Kind = Literal["warnings", "notes"]
_Words = tuple[str | None, ...]  # None stands for a number


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
    spoken: dict[_Words, list[list[str]]] = defaultdict(list)
    speakers: dict[_Words, set[int]] = defaultdict(set)
    for place, run in enumerate(runs):
        longest_first = sorted(filter(None, run.measured), key=len, reverse=True)
        names = [rf"(?<!\w){re.escape(name)}(?!\w)" for name in longest_first]
        # Splits into text and, in every second place, a name or a number.
        token = re.compile(f"({'|'.join([*names, _NUMBER])})")
        for line in said(run, kind):
            parts = token.split(line)
            words = tuple(None if _is_number(part, run) else part for part in parts)
            spoken[words].append([part for part in parts if _is_number(part, run)])
            speakers[words].add(place)
    return tuple(
        f"{_joined(words, numbers)} ({len(speakers[words])} of {_count(runs)})"
        for words, numbers in spoken.items()
    )


def _is_number(part: str, run: Run) -> bool:
    return part not in run.measured and re.fullmatch(_NUMBER, part) is not None


def _count(runs: Sequence[Run]) -> str:
    return f"{len(runs)} run{'s' if len(runs) > 1 else ''}"


def _joined(words: _Words, numbers: Sequence[Sequence[str]]) -> str:
    """The message again: a number where all agree, else the smallest and the largest."""
    ranges = (sorted(set(column), key=float) for column in zip(*numbers, strict=True))
    shown = iter([one[0] if len(one) == 1 else f"{one[0]}–{one[-1]}" for one in ranges])
    return "".join(next(shown) if word is None else word for word in words)


def other_warnings(group: Group) -> tuple[str, ...]:
    """Of seeds that are not in the row, "seed 3 is not in it: diverged after 120 of 1000
    iterations", and of models that predict one class whatever they see."""
    lost = (
        f"seed {seed_of(problem)} is not in it: {problem.reason}" for problem in group.unfinished
    )
    tested = (constant_of(run.summary).get("test", ()) for run in group.runs)
    found = Counter(domain for domains in tested for domain in domains)
    where = [f"{domain} ({count} of {_count(group.runs)})" for domain, count in found.items()]
    constant = [f"predicts one class for every test image of {some_text(where)}"] if where else []
    return (*lost, *constant)
