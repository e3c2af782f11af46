"""`robustmd report outputs --out report`: arguments and what they do. Light until it runs."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from robustmd.commands import add_out, make_parser

EPILOG = """\
prints a summary and writes REPORT/index.html, one page that needs no network, REPORT/README.md
with the same as text, and for each data set REPORT/<data>/: the paper's table (Markdown, LaTeX,
CSV), the paired differences to even (or --baseline), the adversary's regret beside its proved
bound, what the runs cost, every run's values, and the figures as PNG and PDF. What runs warned of
stands beside their rows. Runs that are not finished or cannot be read are listed with the reason,
and what is missing with the command that would run it. What the numbers mean: docs/statistics.md.

examples:
  robustmd report outputs --out report
  robustmd report outputs theirs/outputs --no-figures
  robustmd report outputs --data digits --spread ci95
  robustmd report outputs --experiment demo --select final
  robustmd report outputs --baseline erm
"""
# report.numbers, statistics and figures say the same, and load pandas and matplotlib
SELECT = ("final", "last40", "best-val")
SPREADS = ("std", "sem", "ci95")
WIDTHS = ("column", "text")


def parser() -> argparse.ArgumentParser:
    parser = make_parser("report", EPILOG)
    parser.add_argument(
        "outputs",
        type=Path,
        nargs="*",
        default=[Path("outputs")],
        help="folders with the runs, which make one report (default: outputs)",
    )
    add_out(parser)
    parser.add_argument("--data", metavar="NAME", help="report on this data set only")
    parser.add_argument(
        "--experiment", metavar="NAME", help="report on runs made for this preset only"
    )
    parser.add_argument(
        "--select",
        choices=SELECT,
        default="last40",
        help="which measurements every number is of: the last, the mean of those in the last "
        "40 %% of the run, or the one with the smallest worst-case validation loss (default: "
        "last40); never the test set",
    )
    parser.add_argument(
        "--best-by",
        type=_best_by,
        default="worst_loss",
        metavar="RULE",
        help="what best-val goes by: worst_, worst_tenth_ or mean_ and a metric that the runs "
        "measured, as mean_accuracy (default: worst_loss)",
    )
    parser.add_argument(
        "--spread",
        choices=SPREADS,
        default="std",
        help="what stands behind ±: standard deviation over seeds, standard error of the mean, or "
        "half width of the 95 %% interval of the mean (default: std)",
    )
    parser.add_argument(
        "--baseline",
        metavar="METHOD",
        help="the method that the others are compared with (default: the first of even, erm, "
        "individual that was run)",
    )
    parser.add_argument(
        "--columns",
        type=lambda text: text.split(","),
        default=(),
        metavar="NAMES",
        help="columns of the results to show: worst, worst_tenth, mean, adjusted and names of "
        "domains, with commas between them (default: all); CSV files have all",
    )
    parser.add_argument(
        "--width",
        choices=WIDTHS,
        help="draw for a paper's column (3.25 in) or text (6.75 in), letters of 7.5 pt (default: "
        "for a page)",
    )
    parser.add_argument("--no-figures", action="store_true", help="write the tables alone")
    return parser


def _best_by(text: str) -> str:
    """The same. Raises ArgumentTypeError for a rule that cannot be."""
    from robustmd.metrics import BestBy  # noqa: PLC0415 - loads numpy

    try:
        return str(BestBy.of(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def main(arguments: Sequence[str]) -> int:
    """Write the report and print its summary. Returns the exit code. Raises UserError."""
    args = parser().parse_args(arguments)
    # pandas and matplotlib take a second to load: not for --help
    from robustmd.metrics import BestBy  # noqa: PLC0415
    from robustmd.report.numbers import Rule  # noqa: PLC0415
    from robustmd.report.write import show, write_report  # noqa: PLC0415

    result = write_report(
        args.outputs,
        args.out,
        args.data,
        args.experiment,
        draw=not args.no_figures,
        width=args.width,
        rule=Rule(args.select, BestBy.of(args.best_by)),
        spread=args.spread,
        baseline=args.baseline,
        columns=args.columns,
    )
    show(result, sys.stdout)
    return 0
