"""`robustmd theory`: arguments and what they do. Light until it runs."""

import argparse
from collections.abc import Sequence

from robustmd.theory import command


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd theory`. Returns the exit code. Raises UserError."""
    parser = argparse.ArgumentParser(
        prog="robustmd theory",
        description="The paper's convergence rates and regret bound, measured.",
    )
    command.add_arguments(parser)
    return command.run(parser.parse_args(list(arguments)))
