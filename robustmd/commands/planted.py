"""`robustmd planted --out report`: arguments and what they do. Light until it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from robustmd.studies.command import Findings, Order, run_study

WRITES = """\
writes REPORT/planted/: suboptimality, excess and noise (PNG, PDF), planted.md and planted.csv (the
tables), and runs.csv (every run). docs/planted.md says what the numbers are and what they show. The
optimum comes from a solver with a certificate; exit code 1 if a run is below it. Minutes: one
process a core.
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the study and prints what came out; 1 where a run is below the optimum, else 0.

    Raises:
        UserError: --seeds out of range, or the folder cannot be written.
    """
    return run_study(
        "planted",
        arguments,
        _load,
        description="Every method on synthetic domains whose best worst case is known.",
        writes=WRITES,
        quick="15 iterations in place of 1,000 and the ends of each factor: to see that it works",
        quick_seeds=2,
    )


def _load() -> Callable[[Order], Findings]:
    from robustmd.studies.planted.study import find  # noqa: PLC0415

    return find
