"""`robustmd theory --out report`: arguments and what they do. Light until it runs."""

import argparse
import os
import sys
from pathlib import Path

from robustmd.errors import UserError

EPILOG = """\
writes REPORT/theory/: the regret bound against the constant c (PNG, PDF, CSV), and the measured
convergence beside the proved rates (table in Markdown, LaTeX and CSV, figure in PNG and PDF, every
run's values in runs.csv). docs/theory.md says how to read them. Every L2 and KL run's regret is
compared with its proved bound; exit code 1 if one exceeds it. Minutes: one process a core.

examples:
  robustmd theory --out report
  robustmd theory --out /tmp/look --quick
"""

MOST_SEEDS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what `robustmd theory` takes to a parser."""
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
        default=20,
        metavar="N",
        help="seeds 0 … N−1, N from 2 to 1000 (default: 20)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="T up to 1,000 in place of 100,000: seconds, too short for the rates to show",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the study and prints what came out; 1 where a regret exceeds its bound, else 0.

    Raises:
        UserError: --seeds out of range, or the folder cannot be written.
    """
    if not 2 <= args.seeds <= MOST_SEEDS:
        raise UserError(f"--seeds {args.seeds}: an interval over seeds takes 2 to {MOST_SEEDS}")
    # torch, scipy and matplotlib take seconds to load: not for --help
    from robustmd.theory.study import HORIZONS, QUICK_HORIZONS, write_study  # noqa: PLC0415

    horizons = QUICK_HORIZONS if args.quick else HORIZONS
    workers = 1 if args.quick else os.cpu_count() or 1
    study = write_study(args.out, range(args.seeds), horizons, workers=workers, say=_say)
    _say(f"regret bound: {study.curve.summary()}")
    broken = study.broken_assumptions()
    _say("σ, γ and R bounded what every run met" if not broken else "assumptions exceeded:")
    for line in broken:
        _say(f"  {line}")
    violations = study.regret_violations()
    checks = study.regret_checks()
    _say(f"regret at most its bound at μ_obs in {checks - len(violations)} of {checks} runs")
    for line in violations:
        print(f"robustmd: {line}", file=sys.stderr)  # noqa: T201
    _say(f"written: {study.files[0].parent}")
    return 1 if violations else 0


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201  a command speaks
