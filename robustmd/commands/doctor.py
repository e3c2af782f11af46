"""`robustmd doctor`: arguments and a table of what was found. Light until it runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from robustmd.commands import make_parser
from robustmd.console import make_console

CHANGEABLE = ("paths", "runtime")
EPILOG = """\
Changes nothing; trains two iterations in a temporary folder. Exit code 1 where something is off
(marked !), with what mends it; what merely could be installed or fetched besides has a command too.

examples:
  robustmd doctor
  robustmd doctor paths.data=DIR runtime.device=cuda
"""


def parser() -> argparse.ArgumentParser:
    parser = make_parser("doctor", EPILOG)
    parser.add_argument(
        "overrides", nargs="*", metavar="key=value", help="paths.… and runtime.… as for train"
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd doctor`. Returns 1 where something is off. Raises UserError."""
    overrides = parser().parse_args(arguments).overrides
    from robustmd.config.check import check_taken  # noqa: PLC0415 - torch: not for --help
    from robustmd.doctor import findings  # noqa: PLC0415

    check_taken(overrides, CHANGEABLE, "doctor")
    console, found = make_console(), list(findings(overrides))
    width = max(len(one.what) for one in found)
    for one in found:  # no table: it would break a command or an address that is to be copied
        mark = "!" if one.is_off else " "
        console.print(f"{mark}  {one.what:<{width}}  {one.found}", soft_wrap=True)
        if one.mend:
            console.print(f"   {'':<{width}}  → {one.mend}", soft_wrap=True)
    off = [one.what for one in found if one.is_off]
    console.print(f"off: {', '.join(off)}" if off else "all is here that a run needs")
    return 1 if off else 0
