"""`robustmd planted`: arguments and what they do. Light until it runs."""

import argparse
from collections.abc import Sequence

from robustmd.planted import command


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd planted`. Returns the exit code. Raises UserError."""
    parser = argparse.ArgumentParser(
        prog="robustmd planted",
        description="Every method on synthetic domains whose best worst case is known.",
    )
    command.add_arguments(parser)
    return command.run(parser.parse_args(list(arguments)))
