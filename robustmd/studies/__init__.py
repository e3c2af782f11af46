"""The two studies on small problems: theory (rates and bounds), planted (known optima)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Order:
    """What a study is asked for: seeds 0 … N−1, whether to be quick, and how many processes."""

    seeds: Sequence[int]
    quick: bool
    workers: int = 1


@dataclass(frozen=True)
class Findings:
    """What a study found: its files, lines to say at the end, and what must not be."""

    files: Mapping[str, str | bytes]
    words: Sequence[str]
    violations: Sequence[str]


def say(line: str) -> None:
    """Prints a line at once."""
    print(line, flush=True)  # noqa: T201 - a command speaks
