"""`robustmd report outputs --out report`: arguments and what they do. Light until it runs."""

import argparse
import io
import sys
from pathlib import Path

EPILOG = """\
writes REPORT/README.md and, for each data set, REPORT/<data>/ with the paper's table (Markdown,
LaTeX, CSV), the paired differences to even, the adversary's regret beside its proved bound, every
run's values, and the worst-case training loss as PNG and PDF. What runs warned of stands beside
their rows. Runs that are not finished or cannot be read are listed with the reason.

examples:
  robustmd report outputs --out report
  robustmd report outputs --data digits
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what `robustmd report` takes to a parser."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "outputs",
        type=Path,
        nargs="?",
        default=Path("outputs"),
        help="folder with the runs (default: outputs)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="REPORT",
        help="folder for the report, made if it is not there (default: report)",
    )
    parser.add_argument("--data", metavar="NAME", help="report on this data set only")


def run(args: argparse.Namespace) -> int:
    """Writes the report and prints its summary; 0 when done. Raises `UserError`."""
    # pandas, scipy and matplotlib take a second to load: not for --help
    from robustmd.report.report import write_report  # noqa: PLC0415
    from robustmd.report.terminal import show  # noqa: PLC0415

    result = write_report(args.outputs, args.out, args.data)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without "±" gets "?"
    show(result, sys.stdout)
    return 0
