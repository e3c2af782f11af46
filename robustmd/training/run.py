"""One run from its settings to its directory: whatever happens, its status says so."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unicodedata import normalize

import torch
from rich.console import Console

from robustmd import settings
from robustmd.backbones.networks.pretrained import find_weights
from robustmd.config.loading import load_domains
from robustmd.config.plugins import described
from robustmd.errors import UserError, listed
from robustmd.runs import checkpoints
from robustmd.training.data_record import data_warnings, example_sheet
from robustmd.training.environment import choose_device, describe
from robustmd.training.finished import changed_code, is_finished
from robustmd.training.history import Diverged
from robustmd.training.memory import memory_for
from robustmd.training.other_runs import with_numbers_of_runs
from robustmd.training.placing import directory_of
from robustmd.training.precision import allow_tf32, resolve_precision
from robustmd.training.progress import RunProgress
from robustmd.training.resuming import go_on
from robustmd.training.session import Session
from robustmd.training.stopping import Interrupted, StopRequest
from robustmd.training.summary import summarise, verdict


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `finished`, `kept` (it was there already), `interrupted`, `diverged`.

    `stop_code`: 128 + the signal that came while it was finishing, 0 where none did; a sweep ends.
    """

    status: str
    directory: Path
    message: str
    exit_code: int
    stop_code: int = 0


def run(
    config: settings.Config,
    console: Console,
    overrides: Sequence[str] = (),
    announce: Callable[[Path], None] = lambda _: None,
) -> Outcome:
    """Train one model as `config` says, or find that it has been trained.

    Args:
        config: typed, not yet checked.
        console: where to show progress.
        overrides: what the user typed, key=value, for environment.json.
        announce: is told the run's directory once it is known.

    Raises:
        UserError: the settings, the data or the output folder do not allow it.
    """
    settings.validate(config)
    assert config.paths.outputs is not None
    with StopRequest() as stop:
        try:
            return _run(config, console, overrides, announce, stop)
        except Interrupted as stopped:
            words = f"{stopped} before training; the same command goes on"
            return Outcome("interrupted", Path(config.paths.outputs), words, stopped.code)


def _run(
    config: settings.Config,
    console: Console,
    overrides: Sequence[str],
    announce: Callable[[Path], None],
    stop: StopRequest,
) -> Outcome:
    begun = time.perf_counter()
    with stop.at_once():
        device = choose_device(config.runtime.device)
        _set_up_torch(config.runtime)
        weights = find_weights(config.backbone)
        domains = load_domains(config, lambda line: _say(console, line))
        given, config = config, _with_precision(settings.settled(config, domains.names), device)
        for note in _index_notes(given.method, config.method):
            _say(console, note)
        config, taken = with_numbers_of_runs(config, domains, overrides)
    weights_sha256 = weights.sha256 if weights else None
    read = {"data_fingerprint": domains.fingerprint, "weights_sha256": weights_sha256}
    directory = directory_of(config, read)
    _refuse_links(directory.path, Path(config.paths.outputs or "."))
    announce(directory.path)
    try:
        with directory.locked(lambda line: _say(console, line)):
            if is_finished(directory, config, domains, weights):
                changed = changed_code(directory, config)
                words = "finished before; not trained again (force=true would)"
                words += f"; since then {listed(changed)} changed" if changed else ""
                return Outcome("kept", directory.path, words, 0, stop.code)
            with memory_for("the images and the model; choose a smaller backbone or fewer images"):
                session = Session(config, domains, device, directory, stop)
            session.learner.notes = (*session.learner.notes, *taken)
            for note in session.learner.notes:
                _say(console, note)
            return _train(session, list(overrides), console, begun)
    except OSError as error:
        raise UserError(
            f"{error.filename or directory.path}: {error.strerror or error}; "
            "free or open that place, or choose another with paths.outputs=FOLDER"
        ) from None


def _refuse_links(path: Path, outputs: Path) -> None:
    """The user's own folder may be a link; one below it leads to where nobody asked to write."""
    if path.resolve() != outputs.resolve() / path.relative_to(outputs):
        raise UserError(f"{path}: a symbolic link below {outputs} leads elsewhere; remove it")


def _say(console: Console, line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True)


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


def _train(session: Session, overrides: list[str], console: Console, begun: float) -> Outcome:
    config, directory = session.config, session.directory
    notes = [*session.domains.notes, *session.learner.notes, *_begin(session, overrides, console)]
    session.data_warnings = data_warnings(session.domains, config.paths.folder("cache"))
    examples = example_sheet(session.domains)
    if examples is not None:
        directory.write_examples(examples)
    preparation = time.perf_counter() - begun
    for note in notes:
        directory.append_log(note)

    def conclude(status: str, message: str | None) -> None:
        session.clock.settle()
        spent = {"preparation": preparation, "total": time.perf_counter() - begun}
        directory.write_summary(summarise(session, status, message, notes, spent))
        directory.append_log(f"{status}{': ' + message if message else ''}")

    try:
        conclude("running", None)
        stop = _until_stopped(session, console)
        if stop is not None:
            message = (
                f"{stop} after iteration {session.learner.iteration}; the same command goes on"
            )
            conclude("interrupted", message)
            return Outcome("interrupted", directory.path, message, stop.code)
        conclude("finished", None)
    except Diverged as error:
        message = f"{error}; try a smaller training.learning_rate"
        conclude("diverged", message)
        return Outcome("diverged", directory.path, message, 1)
    except KeyboardInterrupt:  # a second Ctrl-C
        conclude(
            "interrupted", "stopped at once; the same command goes on from the last checkpoint"
        )
        raise
    except BaseException as error:
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        with contextlib.suppress(OSError):  # a full disk takes no summary either
            conclude("failed", f"{kind}{error}")
        raise
    checkpoints.drop(directory.path)
    return Outcome("finished", directory.path, verdict(session), 0, session.stop.code)


def _until_stopped(session: Session, console: Console) -> Interrupted | None:
    """Train to the end, or to where the run was asked to stop: then with a checkpoint."""
    total = session.config.training.iterations
    try:
        with (
            memory_for(_batch(session)),
            RunProgress(console, total, session.learner.iteration) as bar,
        ):
            session.run(bar)
    except Interrupted as stop:
        session.save_checkpoint()
        return stop
    return None


def _batch(session: Session) -> str:
    size = session.config.training.batch_size
    return f"training.batch_size={size}; try {max(1, size // 2)}"


def _begin(session: Session, overrides: list[str], console: Console) -> list[str]:
    """Start the directory, or go on from its last checkpoint. Returns what is to be noted."""
    config, directory, begun = session.config, session.directory, session.learner.weights_file
    with memory_for(_batch(session)):
        batches_hash = session.batches.fingerprint()
    environment = {
        "overrides": overrides,
        "folder": str(Path.cwd()),
        **describe(session.device),
        "experiment": next(
            (o.partition("=")[2] for o in overrides if o.startswith("experiment=")), None
        ),
        "plugins": described(config),
        "data_fingerprint": session.domains.fingerprint,
        "initial_weights_hash": session.initial_weights_hash,
        "weights_sha256": begun.sha256 if begun else None,
        "batches_hash": batches_hash,
    }
    if config.force or not config.resume or not go_on(session, environment):
        directory.begin(settings.as_dict(config), environment)
    for line in session.resumed:
        _say(console, f"  {line}")
    return [*_batch_notes(session, config), *session.resumed]


def _index_notes(given: Any, settled: Any) -> list[str]:
    """Which domain is meant by an index."""
    index, name = getattr(given, "domain", None), getattr(settled, "domain", None)
    if index is None or normalize("NFC", str(index)) == name:
        return []
    return [f"method.domain={index}: no domain is called so; by index it is {name}"]


def _batch_notes(session: Session, config: settings.Config) -> list[str]:
    """What is not as it was asked for, or not as it is with fewer domains."""
    batches, asked, notes = session.batches, config.training.batch_size, []
    if batches.samples_domains:
        notes.append(
            f"each iteration draws {batches.domains_per_batch} of {len(session.trained)} domains, "
            f"with {batches.share} of each's examples"
        )
    if batches.effective_batch != asked:
        notes.append(
            f"training.batch_size={asked} is no multiple of {batches.domains_per_batch} domains: "
            f"{batches.effective_batch} examples an iteration, {batches.share} of each"
        )
    return notes
