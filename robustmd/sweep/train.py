"""`robustmd train`: one run, or a sweep, from what was typed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from robustmd.config.check import Config, make_config
from robustmd.config.grammar import is_hydras
from robustmd.config.identity import number_changing, run_folder
from robustmd.config.loading import domain_names
from robustmd.config.resolve import resolve, with_shorter_warmup
from robustmd.console import make_console
from robustmd.errors import UserError, printable
from robustmd.runs.sweep_note import SweepNote
from robustmd.sweep.jobs import Ended, Job, shown, train_one
from robustmd.sweep.places import processes
from robustmd.sweep.rows import jobs


def train(overrides: Sequence[str], multirun: bool, listing: bool, cfg: str | None) -> int:
    """Run `robustmd train`; under torchrun in each of its processes. Returns the exit code. Raises
    UserError."""
    if processes() == 1:
        return _train(overrides, multirun, listing, cfg)
    from robustmd.training.distributed import joined  # noqa: PLC0415 - torch, and only for torchrun

    with joined():
        return _train(overrides, multirun, listing, cfg)


def _train(typed: Sequence[str], multirun: bool, listing: bool, cfg: str | None) -> int:
    if cfg:
        if multirun:
            raise UserError("--cfg: shows the config of one run; leave -m out")
        own = [text for text in typed if not is_hydras(text)]
        print(yaml.safe_dump(make_config(own).model_dump(), sort_keys=False), end="")  # noqa: T201
        return 0
    found = jobs(typed, multirun)
    if found is not None:
        sweep = [Job(i, len(found), one) for i, one in enumerate(found)]
        return _sweep(sweep, typed, listing)
    if listing:
        _print_listed(_checked(typed), typed)
        return 0
    return train_one(typed, make_console(), []).exit_code


def _sweep(sweep: Sequence[Job], typed: Sequence[str], listing: bool) -> int:
    from robustmd.sweep.hydra_launchers import (  # noqa: PLC0415
        check_launcher,
        launch_elsewhere,
        launcher_of,
    )

    launcher = launcher_of(typed)
    if not listing:
        check_launcher(launcher)
    config = _check_all(sweep, listing)
    if config is None or listing:
        return 0 if config else 2
    from robustmd.sweep.launch import launch, refuse_torchrun  # noqa: PLC0415 - torch

    refuse_torchrun()
    if launcher in ("", "basic"):
        note = SweepNote(Path(config.paths.outputs), typed, len(sweep))
        config = config.model_copy(update={"jobs": 1}) if launcher else config
        ended = launch(sweep, config, note)
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


def _check_all(sweep: Sequence[Job], listing: bool) -> Config | None:
    """Check every run, and list it where `listing`. Returns the config of one of them; None
    where some cannot be: each mistake is told once, with the first run that has it."""
    refused: dict[str, list[Job]] = {}
    config = None
    for job in sweep:
        try:
            config = _checked(job.overrides)
            if listing:
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
