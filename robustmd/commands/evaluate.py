"""`robustmd evaluate RUN_DIR`: arguments and a call. Light until it runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from robustmd.commands import add_run, make_parser

# What does not make it another model or another data set:
CHANGEABLE = ("runtime", "paths", "data.verify", "data.root", "data.manifest", "data.outside")


def parser() -> argparse.ArgumentParser:
    parser = make_parser("evaluate")
    add_run(parser, "runtime.device=…, runtime.threads=…, paths.data=…, data.verify=…, …")
    parser.add_argument(
        "--model",
        choices=("last", "best"),
        default="last",
        help="best: the one that evaluation.keep=best_val kept (default: last)",
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd evaluate`. Returns the exit code. Raises UserError."""
    given = parser().parse_intermixed_args(arguments)
    from robustmd.config.check import check_taken  # noqa: PLC0415
    from robustmd.training.evaluate import evaluate  # noqa: PLC0415 - torch: not for --help

    check_taken(given.overrides, CHANGEABLE, "evaluate")
    return evaluate(Path(given.run), given.overrides, given.model)
