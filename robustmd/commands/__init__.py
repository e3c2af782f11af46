"""The commands, one file each: its arguments (`parser`), and a call (`main`)."""

from __future__ import annotations

import argparse
from pathlib import Path

COMMANDS = {
    "train": "train a model; takes settings as key=value, -m for sweeps",
    "evaluate": "measure a finished run's model again, on all splits",
    "report": "tables and curves from a folder of runs",
    "runs": "what runs there are, how far each is, and what would go on with it",
    "reproduce": "train a finished run again elsewhere and compare the numbers",
    "export": "a finished run's model as a file for other programs",
    "track": "send finished runs to TensorBoard, MLflow or W&B",
    "data": "fetch or find a data set, verify it, show what is in it",
    "doctor": "is all here that a run needs, and what mends what is not",
    "explain": "what a key, a method or another option means",
}


def make_parser(name: str, epilog: str = "", usage: str | None = None) -> argparse.ArgumentParser:
    """The parser of a command, without its arguments."""
    return argparse.ArgumentParser(
        prog=f"robustmd {name}",
        usage=usage,
        description=f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_out(parser: argparse.ArgumentParser) -> None:
    """Adds --out REPORT."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="REPORT",
        help="folder for the report, made if it is not there (default: report)",
    )


def add_outputs(parser: argparse.ArgumentParser, what: str = "folder with the runs") -> None:
    """Adds OUTPUTS, `what` it is."""
    default = Path("outputs")
    parser.add_argument(
        "outputs", type=Path, nargs="?", default=default, help=f"{what} (default: outputs)"
    )


def add_run(parser: argparse.ArgumentParser, keys: str = "") -> None:
    """Adds RUN_DIR, and after it key=value where `keys` says which."""
    parser.add_argument("run", metavar="RUN_DIR", help="outputs/<data>/<method>/<hash>/seed=<n>")
    if keys:
        parser.add_argument("overrides", nargs="*", default=[], metavar="key=value", help=keys)
