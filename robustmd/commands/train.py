"""`robustmd train`: one run, or a sweep, from what was typed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from robustmd.commands import make_parser
from robustmd.config.check import Config, make_config, resolve, with_shorter_warmup
from robustmd.config.compose import is_hydras
from robustmd.config.explained import explain_all
from robustmd.config.identity import number_changing, run_folder
from robustmd.config.loading import domain_names
from robustmd.console import make_console
from robustmd.errors import UserError, printable
from robustmd.sweep.jobs import Ended, Job, shown, train_one
from robustmd.sweep.places import processes
from robustmd.sweep.rows import jobs

FLAGS = {
    "-m --multirun": "train every combination of values with commas between, as seed=0,1,2",
    "--list": "name the runs, train none",
    "--cfg": "show the config of the run, train none",
}
KNOWN = ("-m", "--multirun", "--list", "--cfg", "job", "-h", "--help")
EPILOG = """\
examples:
  robustmd train method=opt data=digits_mini method.lam=0.1
  robustmd train -m method=even,opt seed=0,1,2
  robustmd train experiment=demo
  robustmd train method=opt --cfg job
"""


def parser() -> argparse.ArgumentParser:
    """For --help and for shells."""
    parser = make_parser("train", EPILOG, usage="robustmd train [-m] [key=value …] [flags]")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="all are listed below")
    for flag, what in FLAGS.items():
        parser.add_argument(*flag.split(), action="store_true", help=what)
    parser.add_argument("--config-dir", metavar="DIR", help="options and experiments of your own")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `robustmd train`. Returns the exit code. Raises UserError."""
    if processes() == 1:
        return _main(arguments)
    from robustmd.training.distributed import joined  # noqa: PLC0415 - torch, and only for torchrun

    with joined():
        return _main(arguments)


def _main(arguments: Sequence[str]) -> int:
    flags = {text for text in arguments if text.startswith("-")}
    for flag in flags - {*KNOWN}:
        raise UserError(f"{flag}: no such flag; settings are key=value, flags -m, --list, --cfg")
    typed = [text for text in arguments if text not in KNOWN]
    if flags & {"-h", "--help"}:
        parser().print_help()
        explain_all(typed, make_console())
        return 0
    is_sweep = bool(flags & {"-m", "--multirun"})
    if "--cfg" in flags:
        if is_sweep:
            raise UserError("--cfg: shows the config of one run; leave -m out")
        print(yaml.safe_dump(make_config(_own(typed)).model_dump(), sort_keys=False), end="")  # noqa: T201
        return 0
    found = jobs(typed, is_sweep)
    if found is None and "--list" in flags:
        _print_listed(_checked(typed), typed)
        return 0
    if found is None:
        return train_one(typed, make_console(), []).exit_code
    return _sweep([Job(i, len(found), one) for i, one in enumerate(found)], typed, flags)


def _own(arguments: Sequence[str]) -> list[str]:
    return [text for text in arguments if not is_hydras(text)]


def _sweep(sweep: Sequence[Job], typed: Sequence[str], flags: set[str]) -> int:
    from robustmd.sweep.hydra_launchers import (  # noqa: PLC0415
        check_launcher,
        launch_elsewhere,
        launcher_of,
    )

    launcher = launcher_of(typed)
    if "--list" not in flags:
        check_launcher(launcher)
    config = _check_all(sweep, is_listing="--list" in flags)
    if config is None or "--list" in flags:
        return 0 if config else 2
    from robustmd.sweep.launch import launch, refuse_torchrun  # noqa: PLC0415 - torch

    refuse_torchrun()
    if launcher in ("", "basic"):
        ended = launch(sweep, config.model_copy(update={"jobs": 1}) if launcher else config)
    else:
        hydras = [text for text in typed if is_hydras(text)]
        ended = launch_elsewhere(sweep, hydras, config.paths.outputs)
    return _conclude(sweep, ended)


def _checked(overrides: Sequence[str]) -> Config:
    """The config of a run, with what depends on its domains where they are known without loading
    them. Raises UserError."""
    config, _ = with_shorter_warmup(make_config(overrides), overrides)
    names = config.data.names()
    return resolve(config, names).config if names else config


def _print_listed(config: Config, overrides: Sequence[str]) -> None:
    """One run of `--list`: its folder below paths.outputs, and what was typed for it."""
    if not config.data.names():
        config = resolve(config, domain_names(config)).config
    folder = run_folder(Path(), number_changing(config.model_dump()), config.seed)
    print(folder, " ".join(overrides))  # noqa: T201


def _check_all(sweep: Sequence[Job], is_listing: bool) -> Config | None:
    """Check every run, and list it where `is_listing`. Returns the config of one of them; None
    where some cannot be: each mistake is told once, with the first run that has it."""
    refused: dict[str, list[Job]] = {}
    config = None
    for job in sweep:
        try:
            config = _checked(job.overrides)
            if is_listing:
                _print_listed(config, job.overrides)
        except UserError as error:
            refused.setdefault(str(error), []).append(job)
    if not refused:
        return config
    count = sum(map(len, refused.values()))
    lines = [f"robustmd: {count} of {len(sweep)} runs cannot be, and none was begun:"]
    for message, those in refused.items():
        more = f" (and {len(those) - 1} more)" if len(those) > 1 else ""
        lines.append(printable(f"  {those[0].title}{more}: {message}"))
    print(*lines, sep="\n", file=sys.stderr)  # noqa: T201
    return None


def _conclude(sweep: Sequence[Job], ended: Sequence[Ended | None]) -> int:
    """Every failure of a sweep, at its end. Returns the exit code: 2 where all were the user's to
    mend."""
    failed = [(job, end) for job, end in zip(sweep, ended, strict=True) if end and end.exit_code]
    if failed:
        runs = "1 run" if len(failed) == 1 else f"{len(failed)} runs"
        print(f"robustmd: {runs} did not finish:", file=sys.stderr)  # noqa: T201
    for job, end in failed:
        where = f" ({shown(Path(end.directory))})" if end.directory else ""
        print(printable(f"  {job.title}: {end.message}{where}"), file=sys.stderr)  # noqa: T201
    stops = [end.stops for end in ended if end and end.stops]
    codes = {end.exit_code for _, end in failed}
    return stops[0] if stops else codes.pop() if len(codes) == 1 else int(bool(codes))
