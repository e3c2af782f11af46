"""`robustmd runs outputs`: arguments and what they do. Loads neither torch nor Hydra."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from robustmd.commands import add_outputs, make_parser
from robustmd.errors import UserError, printable
from robustmd.runs import rerun
from robustmd.runs.listing import Listed, differences, list_runs, publish, remove
from robustmd.runs.untrusted import Unreadable

EPILOG = """\
status: finished, running, interrupted (by a signal), failed, diverged, cut off (its process has
gone without a word), unreadable. Every one but finished goes on with the command that
--rerun-command prints, from its last checkpoint. docs/runs.md says more.

examples:
  robustmd runs                                   all runs in outputs/
  robustmd runs outputs --failed                  those that did not finish, with the reason
  robustmd runs outputs --failed --rerun-command | sh
  robustmd runs outputs --clean                   remove the unfinished ones, after a question
  robustmd runs outputs --publish records/study   what a report reads of them, to pass on
"""
COLUMNS = ("run", "status", "iterations", "worst loss", "age", "differs in")
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def parser() -> argparse.ArgumentParser:
    parser = make_parser("runs", EPILOG)
    add_outputs(parser)
    parser.add_argument(
        "--failed",
        action="store_true",
        help="without those that finished or are running",
    )
    parser.add_argument(
        "--rerun-command",
        action="store_true",
        help="print, instead of the list, the command that makes or goes on with each run",
    )
    parser.add_argument(
        "--clean", action="store_true", help="remove the unfinished runs, with their checkpoints"
    )
    parser.add_argument(
        "--publish",
        type=Path,
        metavar="DIR",
        help="copy what a report reads of the finished runs to DIR, tables packed, no models",
    )
    parser.add_argument("--yes", action="store_true", help="with --clean: do not ask")
    return parser


def main(arguments: Sequence[str]) -> int:
    """List, print commands, clean or publish. Returns 0, or 1 where a command is not known or a run
    could not be removed. Raises UserError."""
    args = parser().parse_args(arguments)
    if args.publish is not None:
        count, size = publish(args.outputs, args.publish)
        _say(f"{args.publish}: records of {count} finished runs, {size / 1e6:.2f} MB")
        return 0
    runs = list_runs(args.outputs)
    unfinished = [one for one in runs if not one.is_over]
    if args.clean:
        return _clean(unfinished, args.outputs.resolve(), args.yes)
    shown = unfinished if args.failed else runs
    if args.rerun_command:
        return _print_commands(shown)
    _print_list(shown, args.outputs.resolve())
    counts = Counter(one.status for one in runs)
    words = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    _say(f"{len(runs)} runs: {words}" if runs else f"{args.outputs}: no runs in it")
    return 0


def _print_list(runs: Sequence[Listed], root: Path) -> None:
    if not runs:
        return
    rows: list[tuple[str, ...]] = [COLUMNS]
    for found, difference in zip(runs, differences(runs), strict=True):
        done = "" if found.done is None else f"{found.done}/{found.total}"
        loss = "" if found.worst_loss is None else f"{found.worst_loss:.4f}"
        place = str(found.path.relative_to(root)) if found.path != root else "."
        shown = (place, found.status, done, loss, _age(found.age), difference)
        rows.append(tuple(map(printable, shown)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS) - 1)]
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        _say("  ".join([*cells, row[-1]]).rstrip())
        one = runs[number - 1]
        if number > 0 and one.message:
            _say(f"    {one.message}")


def _age(seconds: float) -> str:
    size, unit = next((pair for pair in UNITS if seconds >= pair[0]), UNITS[-1])
    return f"{int(seconds / size)} {unit}"


def _print_commands(runs: Sequence[Listed]) -> int:
    unknown = 0
    for one in runs:
        try:
            arguments = rerun.overrides(
                one.config, one.environment, outputs=rerun.tree_of(one.path)
            )
        except (Unreadable, IndexError) as reason:
            unknown += 1
            _complain(f"{one.path}: left out: {reason if one.config else one.message}")
        else:
            _say(rerun.command(arguments))
    return 1 if unknown else 0


def _clean(runs: Sequence[Listed], root: Path, sure: bool) -> int:
    if not runs:
        _say("nothing to remove: no unfinished runs")
        return 0
    _print_list(runs, root)
    if not sure and not _agreed(len(runs)):
        _say("nothing removed")
        return 0
    failed = 0
    for one in runs:
        try:
            remove(one.path, root)
        except (UserError, OSError) as error:
            failed += 1
            _complain(str(error))
    _say(f"{len(runs) - failed} runs removed")
    return 1 if failed else 0


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise UserError("--clean asks before it removes; where nobody can answer, add --yes")
    return input(f"Remove these {count} runs for good? [y/N] ").strip().lower() in ("y", "yes")


def _say(line: str) -> None:
    print(printable(line))  # noqa: T201


def _complain(line: str) -> None:
    print(f"robustmd: {printable(line)}", file=sys.stderr)  # noqa: T201
