"""What the commands of both studies take, and how they end."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from robustmd.errors import UserError

MOST_SEEDS = 1000


def study_parser(
    name: str, description: str, writes: str, *, seeds: str, quick: str
) -> argparse.ArgumentParser:
    """The arguments of a study: where to write, how many seeds, and whether to be quick."""
    parser = argparse.ArgumentParser(
        prog=f"robustmd {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"{writes}\nexamples:\n  robustmd {name} --out report\n"
        f"  robustmd {name} --out /tmp/look --quick\n",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="REPORT",
        help="folder for the report, made if it is not there (default: report)",
    )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help=f"seeds 0 … N−1, N from 2 to {MOST_SEEDS} ({seeds})"
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def seeds_of(args: argparse.Namespace, *, quick: int) -> range:
    """What --seeds says; else 20, or `quick` with --quick. Raises UserError."""
    number = (quick if args.quick else 20) if args.seeds is None else args.seeds
    if not 2 <= number <= MOST_SEEDS:
        raise UserError(f"--seeds {number}: an interval over seeds takes 2 to {MOST_SEEDS}")
    return range(number)


def workers_of(args: argparse.Namespace) -> int:
    """How many processes."""
    return 1 if args.quick else os.cpu_count() or 1


def finish(violations: Sequence[str], folder: Path) -> int:
    """Prints what must not be and what was written. Returns the exit code."""
    for line in violations:
        print(f"robustmd: {line}", file=sys.stderr)  # noqa: T201
    say(f"written: {folder}")
    return 1 if violations else 0


def say(line: str) -> None:
    """Prints a line at once."""
    print(line, flush=True)  # noqa: T201 - a command speaks
