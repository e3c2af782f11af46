"""One run from its settings to its directory: whatever happens, its status says so."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rich.console import Console

from robustmd import settings
from robustmd.domains.domain import DomainSet
from robustmd.errors import UserError
from robustmd.runs import checkpoints
from robustmd.runs.identity import canonical, run_folder
from robustmd.runs.writer import RunDirectory
from robustmd.training.data import load_domains
from robustmd.training.environment import choose_device, describe
from robustmd.training.history import Diverged
from robustmd.training.precision import allow_tf32, resolve_precision
from robustmd.training.progress import RunProgress
from robustmd.training.session import Session
from robustmd.training.stopping import Interrupted
from robustmd.training.summary import summarise, verdict


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `finished`, `kept` (it was there already), `interrupted`, `diverged`."""

    status: str
    directory: Path
    message: str
    exit_code: int


def run(config: settings.Config, console: Console, overrides: Sequence[str] = ()) -> Outcome:
    """Train one model as `config` says, or find that it has been trained.

    Args:
        config: typed, not yet checked.
        console: where to show progress.
        overrides: what the user typed, key=value, for environment.json.

    Raises:
        UserError: the settings, the data or the output folder do not allow it.
    """
    begun = time.perf_counter()
    settings.validate(config)
    device = choose_device(config.runtime.device)
    _set_up_torch(config.runtime)
    domains = load_domains(config, lambda line: console.print(line, highlight=False, markup=False))
    config = _with_precision(settings.settled(config, domains.names), device)
    identity = settings.number_changing(settings.as_dict(config))
    assert config.paths.outputs is not None
    directory = RunDirectory(run_folder(Path(config.paths.outputs), identity, config.seed))
    try:
        with directory.locked():
            done = _already_there(directory, config, domains)
            if done is not None:
                return done
            session = Session(config, domains, device, directory)
            return _train(session, list(overrides), console, begun)
    except OSError as error:
        raise UserError(
            f"{error.filename or directory.path}: {error.strerror or error}; "
            "free or open that place, or choose another with paths.outputs=FOLDER"
        ) from None


def _set_up_torch(runtime: settings.Runtime) -> None:
    if runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    if runtime.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(runtime.deterministic)


def _with_precision(config: settings.Config, device: torch.device) -> settings.Config:
    """The config with the precision that `auto` takes here: it is part of the run's identity."""
    precision = resolve_precision(config.runtime.precision, device)
    allow_tf32(precision == "tf32")
    return replace(config, runtime=replace(config.runtime, precision=precision))


def _already_there(
    directory: RunDirectory, config: settings.Config, domains: DomainSet
) -> Outcome | None:
    """The finished run of these settings on these bytes, if there is one and it is wanted."""
    there, environment = directory.config(), directory.environment()
    if config.force or there is None or environment is None:
        return None
    wanted = settings.number_changing(settings.as_dict(config))
    if canonical(settings.number_changing(there)) != canonical(wanted):
        raise UserError(
            f"{directory.path}: holds a run of other settings (see its config.yaml); "
            "force=true trains anew in its place, paths.outputs=FOLDER elsewhere"
        )
    found = environment.get("data_fingerprint")
    if found != domains.fingerprint:
        raise UserError(
            f"{directory.path}: that run read other data (fingerprint {str(found)[:12]}, now "
            f"{domains.fingerprint[:12]}); force=true trains anew in its place, "
            "paths.outputs=FOLDER elsewhere"
        )
    summary = directory.summary()
    if summary is None or summary.get("status") != "finished":
        return None
    return Outcome(
        "kept", directory.path, "finished before; not trained again (force=true would)", 0
    )


def _train(session: Session, overrides: list[str], console: Console, begun: float) -> Outcome:
    config, directory = session.config, session.directory
    notes = list(session.domains.notes) + _begin(session, overrides)
    preparation = time.perf_counter() - begun
    for note in notes:
        directory.append_log(note)

    def conclude(status: str, message: str | None) -> None:
        session.clock.settle()
        spent = {"preparation": preparation, "total": time.perf_counter() - begun}
        directory.write_summary(summarise(session, status, message, notes, spent))
        directory.append_log(f"{status}{': ' + message if message else ''}")

    conclude("running", None)
    try:
        with RunProgress(console, config.training.iterations, session.learner.iteration) as bar:
            session.run(bar)
    except Interrupted as stop:
        session.save_checkpoint()
        message = f"{stop} after iteration {session.learner.iteration}; the same command goes on"
        conclude("interrupted", message)
        return Outcome("interrupted", directory.path, message, stop.code)
    except Diverged as error:
        message = f"{error}; try a smaller training.learning_rate"
        conclude("diverged", message)
        return Outcome("diverged", directory.path, message, 1)
    except torch.OutOfMemoryError:
        message = (
            f"the {session.device} has too little memory for training.batch_size="
            f"{config.training.batch_size}; try {max(1, config.training.batch_size // 2)}"
        )
        conclude("failed", message)
        raise UserError(message) from None
    except BaseException as error:
        with contextlib.suppress(OSError):  # a full disk takes no summary either
            conclude("failed", f"{type(error).__name__}: {error}")
        raise
    conclude("finished", None)
    checkpoints.drop(directory.path)
    return Outcome("finished", directory.path, verdict(session), 0)


def _begin(session: Session, overrides: list[str]) -> list[str]:
    """Start the directory, or go on from its last checkpoint. Returns what is to be noted."""
    config, directory = session.config, session.directory
    environment = {
        "overrides": overrides,
        **describe(session.device),
        "data_fingerprint": session.domains.fingerprint,
        "initial_weights_hash": session.initial_weights_hash,
        "batches_hash": session.batches.fingerprint(),
    }
    state = checkpoints.newest(directory.path) if config.resume and not config.force else None
    if state is None:
        directory.begin(settings.as_dict(config), environment)
        return _batch_note(session, config)
    session.load_checkpoint(state)
    note = f"resumed after iteration {session.learner.iteration}"
    before = directory.environment() or {}
    changed = [
        key
        for key in ("packages", "cpu", "device", "threads", "robustmd")
        if before.get(key) != environment[key]
    ]
    if changed:
        note += f" on another machine ({', '.join(changed)} differ), not bit-exact"
    return [*_batch_note(session, config), note]


def _batch_note(session: Session, config: settings.Config) -> list[str]:
    effective, asked = session.batches.effective_batch, config.training.batch_size
    if effective == asked:
        return []
    return [
        f"training.batch_size={asked} is no multiple of {len(session.trained)} domains: "
        f"{effective} examples an iteration, {session.batches.share} of each"
    ]
