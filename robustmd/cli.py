"""The command `robustmd`: the arguments of every command, dispatch, errors as one line.

Light on purpose: `--help` loads neither torch nor Hydra. A command's work is a function in the room
it belongs to, which gets the arguments by name.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from robustmd import __version__
from robustmd.console import steady_streams
from robustmd.errors import UserError, printable

COMMANDS = {  # what each does, and the function that does it
    "train": ("train a model; takes settings as key=value, -m for sweeps", "sweep.train:train"),
    "evaluate": (
        "measure a finished run's model again, on all splits",
        "training.evaluate:evaluate",
    ),
    "report": ("tables and curves from a folder of runs", "report.write:report"),
    "runs": (
        "what runs there are, how far each is, and what would go on with it",
        "runs.listing:runs",
    ),
    "reproduce": (
        "train a finished run again elsewhere and compare the numbers",
        "training.evaluate:reproduce",
    ),
    "export": ("a finished run's model as a file for other programs", "trained_run:export_run"),
    "track": ("send finished runs to TensorBoard, MLflow or W&B", "trackers:track"),
    "data": (
        "fetch or find a data set, verify it, show what is in it",
        "domains.inspect:show_data",
    ),
    "doctor": ("is all here that a run needs, and what mends what is not", "doctor:doctor"),
    "explain": ("what a key, a method or another option means", "config.explain:explain"),
}
CHANGEABLE = {  # the settings that a command takes, where it does not take all
    # What makes it neither another model nor another data set:
    "evaluate": ("runtime", "paths", "data.verify", "data.root", "data.manifest", "data.outside"),
    "reproduce": ("paths", "runtime", "checkpoint", "logging", "data.root", "data.manifest"),
    "doctor": ("paths", "runtime"),
}
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
RUN_DIR = "outputs/<data>/<method>/<8 hex>/seed=<n>"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, 2 for a user's mistake, 1 for ours."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    with steady_streams():
        code = guarded(lambda: _run(typed))
        lost = getattr(sys.stdout, "lost", None)
        if lost is not None:
            print(f"robustmd: standard output: {lost}; its lines are lost", file=sys.stderr)
            if typed[:1] != ["train"]:  # which leaves a run; what the others make is their lines
                code = code or 2
        return code


def _run(typed: Sequence[str]) -> int:
    if not typed or typed[0] in ("-h", "--help", "help"):
        lines = (f"  {name:<11}{what}" for name, (what, _) in COMMANDS.items())
        print(USAGE.format(commands="\n".join(lines)), end="")
        return 0
    if typed[0] == "--version":
        print(f"robustmd {__version__}")
        return 0
    name, *words = typed
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UserError("the working folder has been removed; go to one that is there") from None
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}? Commands" if near else "commands"
        raise UserError(
            f"no command {name!r}; {hint}: {', '.join(COMMANDS)}. "
            "To train: robustmd train key=value …"
        )
    imports = [] if name == "train" else [word for word in words if word.startswith("imports=")]
    parser = parser_of(name)
    given = vars(parser.parse_intermixed_args([word for word in words if word not in imports]))
    from robustmd.config import plugins

    overrides = given.get("overrides", [])
    with plugins.in_config_dir(given.pop("config_dir")):
        more = plugins.imports_of_experiments(overrides) if name in ("train", "explain") else []
        plugins.load_plugins([*plugins.imports_of([*imports, *overrides]), *more])
        if given.pop("help", False):
            from robustmd.config.explain import explain_all

            parser.print_help()
            explain_all(overrides)
            return 0
        if name in CHANGEABLE:
            from robustmd.config.check import check_taken

            check_taken(overrides, CHANGEABLE[name], name)
        module, _, function = COMMANDS[name][1].partition(":")
        code: int = getattr(import_module(f"robustmd.{module}"), function)(**given)
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


class Parser(argparse.ArgumentParser):
    """Its mistakes are one line, as all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message.removeprefix('argument ')}; {self.prog} --help says more")


def parser_of(name: str) -> Parser:
    """The parser of one command; its names are the arguments of the command's function."""
    what = COMMANDS[name][0]
    parser = Parser(
        prog=f"robustmd {name}",
        description=f"{what[0].upper()}{what[1:]}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=name != "train",  # whose help lists the keys of what was typed
    )
    _ARGUMENTS[name](parser)
    parser.add_argument(
        "--config-dir", "-cd", metavar="DIR", help="options and experiments of your own"
    )
    return parser


def _train(parser: Parser) -> None:
    parser.usage = "robustmd train [-m] [key=value …] [flags]"
    parser.epilog = """\
examples:
  robustmd train method=opt data=digits_mini method.lam=0.1
  robustmd train -m method=even,opt seed=0,1,2
  robustmd train experiment=demo
  robustmd train method=opt --cfg job
"""
    _add_overrides(parser, "all are listed below")
    parser.add_argument("-h", "--help", action="store_true", help="this, and every key")
    parser.add_argument(
        *("-m", "--multirun"),
        action="store_true",
        help="train every combination of values with commas between, as seed=0,1,2",
    )
    parser.add_argument(
        "--list", dest="listing", action="store_true", help="name the runs, train none"
    )
    parser.add_argument(
        "--cfg", choices=["job"], help="show the config of the run, train none", metavar="job"
    )


def _evaluate(parser: Parser) -> None:
    _add_run(parser)
    _add_overrides(parser, "runtime.device=…, runtime.threads=…, paths.data=…, data.verify=…, …")
    parser.add_argument(
        "--model",
        dest="which",
        choices=("last", "best"),
        default="last",
        help="best: the one that evaluation.keep=best_val kept (default: last)",
    )


def _report(parser: Parser) -> None:
    parser.epilog = """\
prints a summary and writes REPORT/index.html, one page that needs no network, REPORT/README.md
with the same as text, and for each data set REPORT/<data>/: the paper's table (Markdown, LaTeX,
CSV), the paired differences to even (or --baseline), the adversary's regret beside its proved
bound, what the runs cost, every run's values, and the figures as PNG and PDF. What runs warned of
stands beside their rows. Runs that are not finished or cannot be read are listed with the reason,
and what is missing with the command that would run it. What the numbers mean: docs/statistics.md.

examples:
  robustmd report outputs --out report
  robustmd report outputs theirs/outputs --no-figures
  robustmd report outputs --data digits --spread ci95
  robustmd report outputs --experiment demo --select final
  robustmd report outputs --baseline erm
"""
    parser.add_argument(
        "outputs",
        type=Path,
        nargs="*",
        default=[Path("outputs")],
        help="folders with the runs, which make one report (default: outputs)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="REPORT",
        help="folder for the report, made if it is not there (default: report)",
    )
    parser.add_argument("--data", metavar="NAME", help="report on this data set only")
    parser.add_argument(
        "--experiment", metavar="NAME", help="report on runs made for this preset only"
    )
    parser.add_argument(
        "--select",
        choices=("final", "last40", "best-val"),
        default="last40",
        help="which measurements every number is of: the last, the mean of those in the last "
        "40 %% of the run, or the one with the smallest worst-case validation loss (default: "
        "last40); never the test set",
    )
    parser.add_argument(
        "--best-by",
        default="worst_loss",
        metavar="RULE",
        help="what best-val goes by: worst_, worst_tenth_ or mean_ and a metric that the runs "
        "measured, as mean_accuracy (default: worst_loss)",
    )
    parser.add_argument(
        "--spread",
        choices=("std", "sem", "ci95"),
        default="std",
        help="what stands behind ±: standard deviation over seeds, standard error of the mean, or "
        "half width of the 95 %% interval of the mean (default: std)",
    )
    parser.add_argument(
        "--baseline",
        metavar="METHOD",
        help="the method that the others are compared with (default: the first of even, erm, "
        "individual that was run)",
    )
    parser.add_argument(
        "--columns",
        type=lambda text: text.split(","),
        default=(),
        metavar="NAMES",
        help="columns of the results to show: worst, worst_tenth, mean, adjusted and names of "
        "domains, with commas between them (default: all); CSV files have all",
    )
    parser.add_argument(
        "--width",
        choices=("column", "text"),
        help="draw for a paper's column (3.25 in) or text (6.75 in), letters of 7.5 pt (default: "
        "for a page)",
    )
    parser.add_argument(
        "--no-figures", dest="draw", action="store_false", help="write the tables alone"
    )


def _runs(parser: Parser) -> None:
    parser.epilog = """\
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
    _add_outputs(parser, "folder with the runs")
    parser.add_argument(
        "--failed", action="store_true", help="without those that finished or are running"
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
        help="write what a report reads of the finished runs to DIR as a few tables, no models",
    )
    parser.add_argument("--yes", action="store_true", help="with --clean: do not ask")


def _reproduce(parser: Parser) -> None:
    parser.epilog = f"""\
Code 0 where every number is the same, else 1 and the largest differences. The reproduction uses the
device and the number of threads that this machine would choose: name others with runtime.device and
runtime.threads.

examples:
  robustmd reproduce {_EXAMPLE}
  robustmd reproduce {_EXAMPLE} runtime.threads=1 --out again
"""
    _add_run(parser)
    _add_overrides(parser, "paths.data=…, paths.cache=…, runtime.device=…, runtime.threads=…")
    parser.add_argument(
        "--out",
        dest="kept",
        type=Path,
        metavar="FOLDER",
        help="outputs tree for the reproduction, kept (default: a temporary one, kept unless the "
        "numbers are identical)",
    )


def _export(parser: Parser) -> None:
    parser.epilog = f"""\
The file takes images, uint8 [n, H, W, 3] for any n, and gives logits, float32 [n, C]; the scaling
of pixels is inside. It is compared with the model on random images before it is kept.
docs/python.md says more.

examples:
  robustmd export {_EXAMPLE} --onnx
  robustmd export {_EXAMPLE} --torch-export --out digits.pt2
"""
    _add_run(parser)
    kinds = parser.add_mutually_exclusive_group(required=True)
    for kind, file in (("onnx", "model.onnx"), ("torch-export", "model.pt2")):
        kinds.add_argument(
            f"--{kind}", dest="kind", action="store_const", const=kind, help=f"write {file}"
        )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write that file instead")


def _track(parser: Parser) -> None:
    parser.epilog = """\
As tracking=[…] does while a run is trained; what a tracker has already is not sent again.
docs/trackers.md says what goes where.

example: robustmd track outputs --to tensorboard,mlflow,wandb --model
"""
    _add_outputs(parser, "folder with the runs, or one run's")
    parser.add_argument("--to", required=True, metavar="NAMES", help="the trackers")
    parser.add_argument("--model", action="store_true", help="the final models' files too")


def _data(parser: Parser) -> None:
    parser.epilog = """\
Loads exactly what `robustmd train data=NAME key=value …` would. Without NAME: lists the data sets.

examples:
  robustmd data
  robustmd data digits_mini --show digits_mini.png
  robustmd data digits paths.data=DIR data.verify=false
  robustmd data folder data.root=DIR --show examples.pdf
  robustmd data digits --check
"""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="NAME key=value",
        help="a data set, and settings of data.…, paths.… and seed as for train",
    )
    parser.add_argument(
        "--show", dest="picture", type=Path, metavar="FILE", help="draw examples: .png or .pdf"
    )
    parser.add_argument(
        "--check", action="store_true", help="read all prepared arrays and compare their checksums"
    )


def _doctor(parser: Parser) -> None:
    parser.epilog = """\
Changes nothing; trains two iterations in a temporary folder. Exit code 1 where something is off
(marked !), with what mends it; what merely could be installed or fetched besides has a command too.

examples:
  robustmd doctor
  robustmd doctor paths.data=DIR runtime.device=cuda
"""
    _add_overrides(parser, "paths.… and runtime.… as for train")


def _explain(parser: Parser) -> None:
    parser.epilog = """\
Without KEY: every key, with its value in the command that would be `robustmd train key=value …`.

examples:
  robustmd explain training.learning_rate
  robustmd explain training.learning_rate data=pets
  robustmd explain method=opt
  robustmd explain data=folder experiment=mini_fair
"""
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="KEY key=value",
        help="a key, a method or another option, and settings as for train",
    )


def _add_outputs(parser: Parser, what: str) -> None:
    default = Path("outputs")
    parser.add_argument(
        "outputs", type=Path, nargs="?", default=default, help=f"{what} (default: outputs)"
    )


def _add_run(parser: Parser) -> None:
    parser.add_argument("path", type=Path, metavar="RUN_DIR", help=RUN_DIR)


def _add_overrides(parser: Parser, what: str) -> None:
    parser.add_argument("overrides", nargs="*", default=[], metavar="key=value", help=what)


_EXAMPLE = "outputs/digits_mini/opt/3f2a91c0/seed=0"
_ARGUMENTS = {
    "train": _train,
    "evaluate": _evaluate,
    "report": _report,
    "runs": _runs,
    "reproduce": _reproduce,
    "export": _export,
    "track": _track,
    "data": _data,
    "doctor": _doctor,
    "explain": _explain,
}
