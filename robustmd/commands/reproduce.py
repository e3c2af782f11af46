"""`robustmd reproduce RUN_DIR`: arguments and a call. Light until it runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from robustmd.commands import add_run, make_parser

CHANGEABLE = ("paths", "runtime", "checkpoint", "logging", "data.root", "data.manifest")
EPILOG = """\
Code 0 where every number is the same, else 1 and the largest differences. The reproduction uses the
device and the number of threads that this machine would choose: name others with runtime.device and
runtime.threads.

examples:
  robustmd reproduce outputs/digits_mini/opt/3f2a91c0/seed=0
  robustmd reproduce outputs/digits_mini/opt/3f2a91c0/seed=0 runtime.threads=1 --out again
"""


def parser() -> argparse.ArgumentParser:
    parser = make_parser("reproduce", EPILOG)
    add_run(parser, "paths.data=…, paths.cache=…, runtime.device=…, runtime.threads=…")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="outputs tree for the reproduction, kept (default: a temporary one, kept unless the "
        "numbers are identical)",
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd reproduce`. Returns the exit code. Raises UserError."""
    given = parser().parse_intermixed_args(arguments)
    from robustmd.config.check import check_taken  # noqa: PLC0415
    from robustmd.training.evaluate import reproduce  # noqa: PLC0415 - torch, as above

    check_taken(given.overrides, CHANGEABLE, "reproduce")
    return reproduce(Path(given.run), given.overrides, given.out)
