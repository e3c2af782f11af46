"""One run from its settings to its directory: whatever happens, its status says so."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unicodedata import normalize

import torch
from rich.console import Console

from robustmd.backbones.networks.pretrained import find_weights
from robustmd.config import settings, validation
from robustmd.config.loading import load_domains
from robustmd.config.plugins import described
from robustmd.domains.duplicates import duplicate_warnings, duplicates
from robustmd.errors import Say, UserError, listed
from robustmd.runs import files
from robustmd.runs.writer import ReadDirectory
from robustmd.trackers.tracker import check_trackers
from robustmd.training.console import Interrupted, RunProgress, StopRequest
from robustmd.training.finished_runs import changed_code, drop_checkpoints, is_finished
from robustmd.training.history import Diverged
from robustmd.training.plan import Plan
from robustmd.training.ranks import here
from robustmd.training.records import (
    choose_device,
    describe,
    example_sheet,
    memory_for,
    set_up,
    summarise,
    verdict,
)
from robustmd.training.resume import extend, go_on
from robustmd.training.session import Pruned, Session
from robustmd.training.tracking import Following

GOES_ON = "the same command goes on"
MANY = 1_000_000  # images; among more a run names the duplicates that `robustmd data` has found


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `finished`, `kept` (it was there already), `interrupted`, `diverged`,
    `pruned` (see `limits` of `run`).

    `stop_code`: 128 + the signal that came, 0 where none did; a sweep ends.
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
    limits: Mapping[int, float] | None = None,
) -> Outcome:
    """Train one model as `config` says, or find that it has been trained.

    Args:
        overrides: what the user typed, key=value, for environment.json.
        announce: is told the run's directory once it is known.
        limits: of a trial of a search: iteration -> the least worst-case validation loss [nats] by
            then, without which it stops at a checkpoint; other runs go on with it to their end.

    Raises:
        UserError: the settings, the data or the output folder do not allow it.
    """
    begun = time.perf_counter()

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    def note(line: str) -> None:
        directory.append_log(line)
        say(f"  {line}")

    validation.validate(config)
    check_trackers(config.tracking)
    ranks = here()
    with StopRequest() as stop:
        try:
            with stop.at_once():
                plan = _planned(config, overrides, say)
        except Interrupted as stopped:
            words = f"{stopped} before training; {GOES_ON}"
            return Outcome("interrupted", Path(config.paths.outputs), words, stopped.code)
        directory = plan.directory
        announce(directory.path)
        try:
            with directory.locked(say):
                if ranks.first_says(ranks.is_first and is_finished(plan)):
                    changed = changed_code(plan)
                    words = "finished before; not trained again (force=true would)"
                    words += f"; since then {listed(changed)} changed" if changed else ""
                    return Outcome("kept", directory.path, words, 0, stop.code)
                with memory_for(
                    "the images and the model; choose a smaller backbone or fewer images"
                ):
                    session = Session(plan, stop, limits)
                if ranks.is_first:
                    with Following(directory, config, note):
                        outcome = _train(session, list(overrides), console, begun)
                else:  # beside the first of several processes, which writes the run
                    ranks.share(session.state, config.seed)
                    outcome, _ = _trained(session, console)
                return replace(outcome, stop_code=stop.code)
        except OSError as error:
            raise UserError(
                f"{error.filename or directory.path}: {error.strerror or error}; "
                "free or open that place, or choose another with paths.outputs=FOLDER"
            ) from None


def _planned(config: settings.Config, overrides: Sequence[str], say: Say) -> Plan:
    """The plan, for the data that are there; torch is set up for it."""
    runtime = config.runtime
    device = here().device(choose_device(runtime.device))
    config = replace(config, runtime=replace(runtime, precision=set_up(runtime, device)))
    if runtime.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if torch.are_deterministic_algorithms_enabled() != runtime.deterministic:
        torch.use_deterministic_algorithms(runtime.deterministic)  # a second: loads a compiler
    weights = find_weights(config.backbone)
    plan = Plan.of(config, load_domains(config, say), device, weights, overrides, say)
    index, name = (getattr(one.method, "domain", None) for one in (config, plan.config))
    if index is not None and normalize("NFC", str(index)) != name:
        say(f"method.domain={index}: no domain is called so; by index it is {name}")
    here().check(plan)
    return plan if here().is_first else replace(plan, directory=ReadDirectory(plan.directory.path))


def _train(session: Session, overrides: list[str], console: Console, begun: float) -> Outcome:
    plan, directory = session.plan, session.plan.directory
    said = [*session.learner.notes, *plan.notes]
    for note in said:
        console.print(note, highlight=False, soft_wrap=True)
    notes = [*plan.domains.notes, *said, *_begin(session, overrides, console)]
    cache = plan.config.paths.folder("cache")
    session.data_warnings = duplicate_warnings(duplicates(plan.domains, cache, most=MANY) or ())
    examples = example_sheet(plan.domains)
    if examples is not None:
        directory.write(files.EXAMPLES, examples)
    preparation = time.perf_counter() - begun
    for note in notes:
        directory.append_log(note)

    def conclude(status: str, message: str | None) -> None:
        session.clock.settle()
        spent = {"preparation": preparation, "total": time.perf_counter() - begun}
        directory.write_record(files.SUMMARY, summarise(session, status, message, notes, spent))
        directory.append_log(f"{status}{': ' + message if message else ''}")

    try:
        conclude("running", None)
        outcome, why = _trained(session, console)
        conclude(outcome.status, why)
    except KeyboardInterrupt:  # a second Ctrl-C
        conclude("interrupted", f"stopped at once; {GOES_ON} from the last checkpoint")
        raise
    except BaseException as error:
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        with contextlib.suppress(OSError):  # a full disk takes no summary either
            conclude("failed", f"{kind}{error}")
        raise
    if outcome.status == "finished":
        drop_checkpoints(plan, session.keeps_end)
    return outcome


def _trained(session: Session, console: Console) -> tuple[Outcome, str | None]:
    """How training ended, and why where that was not its end."""
    plan, learner = session.plan, session.learner
    path = plan.directory.path
    try:
        with (
            memory_for(_batch(plan)),
            RunProgress(console, plan.iterations, learner.iteration) as bar,
        ):
            session.run(bar)
    except Interrupted as stop:
        why = f"{stop} after iteration {learner.iteration}; {GOES_ON}"
        return Outcome("interrupted", path, why, stop.code), why
    except Pruned as worse:
        message = f"pruned after iteration {learner.iteration}: {worse}"
        return Outcome("pruned", path, message, 0), str(worse)
    except Diverged as error:
        why = f"{error}; try a smaller training.learning_rate"
        return Outcome("diverged", path, why, 1), why
    return Outcome("finished", path, verdict(session), 0), None


def _batch(plan: Plan) -> str:
    size = plan.config.training.batch_size
    return f"training.batch_size={size}; try {max(1, size // 2)}"


def _begin(session: Session, overrides: list[str], console: Console) -> list[str]:
    """Start the directory, or go on from its last checkpoint. Returns what is to be noted."""
    plan, config = session.plan, session.plan.config
    with memory_for(_batch(plan)):
        batches_hash = session.parts.batches.fingerprint()
    named = [o.partition("=")[2] for o in overrides if o.startswith("experiment=")]
    environment = {
        "overrides": overrides,
        "folder": str(Path.cwd()),
        **describe(plan.device),
        **({"processes": here().size} if here().size > 1 else {}),
        "experiment": named[0] if named else None,
        "plugins": described(config),
        **plan.read,
        "initial_weights_hash": session.initial_weights_hash,
        "batches_hash": batches_hash,
    }
    if config.force or not config.resume or not go_on(plan, session.state, environment):
        plan.directory.begin(plan.plain, environment)
        if config.extend:
            extend(plan, session.state, environment)
    here().share(session.state, config.seed)
    for line in session.state.resumed:
        console.print(f"  {line}", highlight=False, soft_wrap=True)
    return [*_batch_notes(session), *session.state.resumed]


def _batch_notes(session: Session) -> list[str]:
    """What is not as it was asked for, or not as it is with fewer domains."""
    batches, notes = session.parts.batches, []
    asked = session.plan.config.training.batch_size
    if batches.samples_domains:
        notes.append(
            f"each iteration draws {batches.domains_per_batch} of {len(batches.domains)} domains, "
            f"with {batches.share} of each's examples"
        )
    if batches.counts is not None:
        counts = [f"{n} of {name}" for name, n in zip(batches.domains, batches.counts, strict=True)]
        notes.append(f"data.shares: each iteration has {listed(counts)}")
    if not batches.is_whole:
        notes.append(f"{here().size} processes: each takes its part of every batch")
    if batches.effective_batch != asked:
        notes.append(
            f"training.batch_size={asked} is no multiple of {batches.domains_per_batch} domains: "
            f"{batches.effective_batch} examples an iteration, {batches.share} of each"
        )
    return notes
