"""`robustmd planted --out report`: arguments and what they do. Light until it runs."""

import argparse
import os
import sys
from pathlib import Path

from robustmd.errors import UserError

EPILOG = """\
writes REPORT/planted/: suboptimality, excess and noise (PNG, PDF), planted.md and planted.csv (the
tables), and runs.csv (every run). docs/planted.md says what the numbers are and what they show. The
optimum comes from a solver with a certificate; exit code 1 if a run is below it. Minutes: one
process a core.

examples:
  robustmd planted --out report
  robustmd planted --out /tmp/look --quick
"""

MOST_SEEDS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what `robustmd planted` takes to a parser."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="REPORT",
        help="folder for the report, made if it is not there (default: report)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help="seeds 0 … N−1, N from 2 to 1000 (default: 20; with --quick 2)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="15 iterations in place of 1,000 and the ends of each factor: to see that it works",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the study and prints what came out; 1 where a run is below the optimum, else 0.

    Raises:
        UserError: --seeds out of range, or the folder cannot be written.
    """
    seeds = args.seeds if args.seeds is not None else (2 if args.quick else 20)
    if not 2 <= seeds <= MOST_SEEDS:
        raise UserError(f"--seeds {seeds}: an interval over seeds takes 2 to {MOST_SEEDS}")
    # torch, scipy and matplotlib take seconds to load: not for --help
    from robustmd.planted.study import FOLDER, write_study  # noqa: PLC0415

    workers = 1 if args.quick else os.cpu_count() or 1
    results = write_study(args.out, range(seeds), quick=args.quick, workers=workers, say=_say)
    _say(f"{results.num_runs:,} runs; optima exact within {results.largest_error:.0e}")
    if results.diverged:
        _say(f"{len(results.diverged)} runs diverged and could not be chosen")
    violations = results.violations()
    for line in violations:
        print(f"robustmd: {line}", file=sys.stderr)  # noqa: T201
    _say(f"written: {args.out / FOLDER}")
    return 1 if violations else 0


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201  a command speaks
