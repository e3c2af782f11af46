"""The command `robustmd`: finds the sub-command, and turns errors into one line and an exit code.

Light on purpose: `--help` imports neither torch nor hydra; each command imports what it needs.
"""

from __future__ import annotations

import difflib
import errno
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module

from robustmd import __version__
from robustmd.commands import COMMANDS
from robustmd.console import steady_streams
from robustmd.errors import UserError, printable

USAGE = """\
robustmd: one model for several domains, so that its worst domain does well.

Most used:
  robustmd train method=opt data=digits_mini            train one model
  robustmd train -m method=even,opt seed=0,1,2          train every combination
  robustmd report outputs --out report                  tables and curves of the runs

Commands (robustmd COMMAND --help says more):
{commands}

Options: --help, --version; of every command: imports=[MODULE], --config-dir DIR
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command. Returns the exit code: 0, 2 for a user's mistake, 1 for ours."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with steady_streams():
        code = _main(given)
        lost = getattr(sys.stdout, "lost", None)
        if lost is not None:
            print(f"robustmd: standard output: {lost}; its lines are lost", file=sys.stderr)
            if given[:1] != ["train"]:  # which leaves a run; what the others make is their lines
                code = code or 2
        return code


def _main(given: Sequence[str]) -> int:
    if not given or given[0] in ("-h", "--help", "help"):
        lines = (f"  {name:<11}{what}" for name, what in COMMANDS.items())
        print(USAGE.format(commands="\n".join(lines)), end="")
        return 0
    if given[0] == "--version":
        print(f"robustmd {__version__}")
        return 0
    if given[0] not in COMMANDS:
        near = difflib.get_close_matches(given[0], COMMANDS, n=1)
        hint = f"did you mean {near[0]}? Commands" if near else "commands"
        print(
            f"robustmd: no command {given[0]!r}; {hint}: {', '.join(COMMANDS)}. "
            "To train: robustmd train key=value …",
            file=sys.stderr,
        )
        return 2
    return guarded(lambda: _with_plugins(given[0], given[1:]))


def _with_plugins(name: str, arguments: Sequence[str]) -> int:
    """Run a command with the user's own modules imported: `imports=[…]` goes with every command."""
    from robustmd.config import plugins

    with plugins.in_config_dir(arguments) as given:
        more = plugins.imports_of_experiments(given) if name in ("train", "explain") else []
        plugins.load_plugins([*plugins.imports_of(given), *more])
        command = import_module(f"robustmd.commands.{name}").main
        code: int = command(given if name == "train" else plugins.without_imports(given))
    return code


def guarded(command: Callable[[], int]) -> int:
    """Run a command; a mistake of the user's is a line and code 2, a bug a traceback and code 1."""
    try:
        return command()
    except UserError as error:
        print(f"robustmd: {printable(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("robustmd: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            name = printable(str(error.filename)[:100])
            print(f"robustmd: {name}…: a longer name than files can have here", file=sys.stderr)
            return 2
        print(*map(printable, traceback.format_exc().splitlines()), sep="\n", file=sys.stderr)
        from robustmd.config.plugins import whose

        print(f"robustmd: {whose(error)}", file=sys.stderr)
        return 1
