"""What the commands of both studies take, what they write, and how they end."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from robustmd.commands import add_out, make_parser
from robustmd.errors import UserError
from robustmd.studies import Findings, Order, say

MOST_SEEDS = 1000


@dataclass(frozen=True)
class Study:
    """A command that writes `<out>/<name>/`.

    writes: what it writes, for --help. quick: what --quick changes, likewise. quick_seeds: how many
    seeds --quick takes.
    """

    name: str
    writes: str
    quick: str
    quick_seeds: int = 20

    def main(self, arguments: Sequence[str]) -> int:
        """Runs it and prints what came out; 1 where something must not be, else 0.

        Raises:
            UserError: --seeds out of range, or the folder cannot be written.
        """
        args = self.parser().parse_args(list(arguments))
        number = (self.quick_seeds if args.quick else 20) if args.seeds is None else args.seeds
        if not 2 <= number <= MOST_SEEDS:
            raise UserError(f"--seeds {number}: an interval over seeds takes 2 to {MOST_SEEDS}")
        folder = args.out / self.name
        try:
            folder.mkdir(parents=True, exist_ok=True)  # before the work
        except OSError as error:
            raise UserError(f"--out {args.out}: cannot be written ({error.strerror})") from error
        workers = 1 if args.quick else os.cpu_count() or 1
        # The study and the report take seconds to load: not for --help.
        study = import_module(f"robustmd.studies.{self.name}.study")
        found: Findings = study.find(Order(range(number), args.quick, workers))
        from robustmd.report.report import write  # noqa: PLC0415

        for name, content in found.files.items():
            write(folder / name, content)
        for line in found.words:
            say(line)
        for line in found.violations:
            print(f"robustmd: {line}", file=sys.stderr)  # noqa: T201
        say(f"written: {folder}")
        return 1 if found.violations else 0

    def parser(self) -> argparse.ArgumentParser:
        name, fewer = self.name, self.quick_seeds
        default = "default: 20" if fewer == 20 else f"default: 20; with --quick {fewer}"
        parser = make_parser(
            name,
            f"{self.writes}\nexamples:\n  robustmd {name} --out report\n"
            f"  robustmd {name} --out /tmp/look --quick\n",
        )
        add_out(parser)
        parser.add_argument(
            "--seeds",
            type=int,
            metavar="N",
            help=f"seeds 0 … N−1, N from 2 to {MOST_SEEDS} ({default})",
        )
        parser.add_argument("--quick", action="store_true", help=self.quick)
        return parser
