"""`robustmd track outputs --to mlflow`: arguments and what they do. Light until it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from robustmd.commands import add_outputs, make_parser
from robustmd.errors import printable

EPILOG = """\
As tracking=[…] does while a run is trained; what a tracker has already is not sent again.
docs/trackers.md says what goes where.

example: robustmd track outputs --to tensorboard,mlflow,wandb --model
"""


def parser() -> argparse.ArgumentParser:
    parser = make_parser("track", EPILOG)
    add_outputs(parser, "folder with the runs, or one run's")
    parser.add_argument("--to", required=True, metavar="NAMES", help="the trackers")
    parser.add_argument("--model", action="store_true", help="the final models' files too")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd track`. Returns 0, or 1 where a run could not be sent. Raises UserError."""
    given = parser().parse_args(arguments)
    # torch and pandas take seconds to load: not for --help
    from robustmd.runs.reader import collect  # noqa: PLC0415
    from robustmd.runs.writer import RunDirectory  # noqa: PLC0415
    from robustmd.trackers import check_trackers, send  # noqa: PLC0415

    names = given.to.split(",")
    check_trackers(names)
    found, failed = collect(given.outputs), 0
    for run, name in ((run, name) for run in found.runs for name in names):
        try:
            send(RunDirectory(run.path), name, model=given.model)
        except Exception as error:
            failed += 1
            words = f"{run.place}: {name}: {type(error).__name__}: {error}"
            print(f"robustmd: {printable(words)}", file=sys.stderr)  # noqa: T201
    left_out = sum(problem.scope == "run" for problem in found.problems)
    sent = len(found.runs) * len(names) - failed
    print(f"{sent} sent, {failed} failed; {left_out} runs left out: not finished, or unsound")  # noqa: T201
    return 1 if failed else 0
