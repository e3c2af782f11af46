"""`robustmd explain KEY`: what a key or an option means."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from robustmd.commands import make_parser
from robustmd.console import make_console
from robustmd.errors import UserError

EPILOG = """\
Without KEY: every key, with its value in the command that would be `robustmd train key=value …`.

examples:
  robustmd explain training.learning_rate
  robustmd explain training.learning_rate data=pets
  robustmd explain method=opt
  robustmd explain data=folder experiment=mini_fair
"""


def parser() -> argparse.ArgumentParser:
    parser = make_parser("explain", EPILOG)
    parser.add_argument(
        "words",
        nargs="*",
        metavar="KEY key=value",
        help="a key, a method or another option, and settings as for train",
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd explain`. Returns the exit code. Raises UserError."""
    words = parser().parse_args(arguments).words
    from robustmd.config import explained  # noqa: PLC0415 - not needed for --help
    from robustmd.config.settings import OPTIONS  # noqa: PLC0415

    console = make_console()
    topics = [word for word in words if "=" not in word]
    overrides = [word for word in words if "=" in word]
    if len(topics) > 1:
        raise UserError(f"{' '.join(topics)}: one key at a time")
    options = [
        f"{group}={topic}" for group in OPTIONS for topic in topics if topic in OPTIONS[group]
    ]
    if not topics and len(words) == 1 and words[0].partition("=")[0] in OPTIONS:
        options = words
    for option in options:
        group, _, name = option.partition("=")
        explained.explain_option(group, name, console)
    if topics and not options:
        explained.explain_key(topics[0], overrides, console)
    if not topics and not options:
        explained.explain_all(overrides, console)
    return 0
