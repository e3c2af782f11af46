"""`hydra/sweeper=optuna`: a search for the settings with the least worst-case validation loss.

Each trial is one run. They are drawn a batch at a time; after an interruption the same command goes
on with those that were under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.types import IntervalSweep
from hydra.core.utils import JobStatus
from hydra_plugins.robustmd import RowsSweeper, check_sections, parsed, setting
from omegaconf import open_dict

from robustmd.config import settings, validation
from robustmd.config.composing import as_typed
from robustmd.config.identity import config_hash, number_changing
from robustmd.config.loading import load_domains
from robustmd.config.ranges import Tune
from robustmd.errors import UserError
from robustmd.extras import install, required
from robustmd.runs.lock import held
from robustmd.runs.rerun import command
from robustmd.sweeping.draws import own_ranges
from robustmd.sweeping.slots import slots

if TYPE_CHECKING:
    from robustmd.sweeping.search import Search

LIMITS = "++hydra.sweeper.limits="
LEAST = {"trials": 1, "batch": 1, "seed": 0, "prune_after": 1}


class OptunaSweeper(RowsSweeper):
    """Hydra's sweeper of trials; `keys` are those of conf/hydra/sweeper/optuna.yaml."""

    def __init__(self, storage: str, limits: Mapping[str, float], **keys: Any) -> None:
        super().__init__([], {}, None, False)
        self._storage, self._keys = storage, keys

    def sweep(self, arguments: list[str]) -> None:
        """Run trials until there are enough, and say which was best.

        Raises:
            UserError: what was typed makes no search, or optuna is missing.
        """
        config = self.without_hydra()
        self._check(config)
        fixed, ranges = _parted(arguments, config.method.name)
        trials, seed, outputs = self._keys["trials"], self._keys["seed"], Path(config.paths.outputs)
        asked = {"config": number_changing(settings.as_dict(config)), "seed": config.seed}
        drawn = {"ranges": {key: repr(of) for key, of in ranges.items()}, "draws": seed}
        digits = config_hash({**asked, **drawn})
        name = f"{config.data.name} {config.method.name} {digits}"
        places = slots(config.runtime.device, trials, config.jobs, config.jobs_per_device)
        outputs.mkdir(parents=True, exist_ok=True)
        with held(outputs / f".tuning-{digits}.lock"), self.recorded(trials):
            search = _search()(self._storage, name, ranges, seed)
            while batch := search.next(trials, self._keys["batch"] or len(places)):
                values = [_written(trial.params) for trial in batch]
                found = self._results([[*fixed, *own] for own in values], batch[0].number, search)
                for trial, loss in zip(batch, found, strict=True):
                    search.tell(trial, loss)
                if all(loss is None for loss in found):
                    break  # they have failed, and so would the next
        if best := search.best():
            own = as_typed([*fixed, *_written(best.params)])
            seeds = f"seed={config.seed + 1},{config.seed + 2},{config.seed + 3}"
            again = command(["-m", *(one for one in own if not one.startswith("seed=")), seeds])
            line = f"{' '.join(own[len(fixed) :])}, worst-case validation loss {best.value:.4f}"
            print(f"best of {search.counts()}: {line}; with other seeds:\n  {again}")  # noqa: T201

    def _results(self, jobs: list[list[str]], first: int, search: Search) -> list[Any]:
        """What the runs return; None: it failed."""
        told = search.limits(self._keys["prune_after"]).items()
        limits = LIMITS + "{" + ",".join(f"{at}:{loss}" for at, loss in told) + "}"
        typed = self.config.hydra.overrides.hydra
        with open_dict(self.config):  # from which every launcher composes a job's
            kept = [one for one in typed if not one.startswith(LIMITS)]
            self.config.hydra.overrides.hydra = [*kept, limits]
        returns = self.launcher.launch(jobs, initial_job_idx=first)
        return [one.return_value if one.status == JobStatus.COMPLETED else None for one in returns]

    def _check(self, config: settings.Config) -> None:
        """Raises UserError."""
        if getattr(self.task_function, "listing", False):
            raise UserError("--list: a search draws its runs one after another; leave it out")
        for name, value in self._keys.items():
            if name not in LEAST:
                raise UserError(
                    f"hydra.sweeper.{name}: hydra/sweeper=optuna has no such key; where an "
                    "experiment sets it, leave the experiment out"
                )
            is_null = value is None and name in ("batch", "prune_after")
            if not is_null and (type(value) is not int or value < LEAST[name]):
                least = LEAST[name]
                raise UserError(f"hydra.sweeper.{name}={value}: must be a whole number >= {least}")
        validation.validate(config)
        if config.data.validation == 0 and any(
            domain.val is None for domain in load_domains(config, lambda _: None)
        ):
            raise UserError(
                "hydra/sweeper=optuna: chooses by the worst-case validation loss, and there is no "
                "validation set; hold training images out with data.validation=0.2"
            )


def _search() -> type[Search]:
    try:
        from robustmd.sweeping.search import Search  # noqa: PLC0415 - optuna is an extra
    except ImportError as error:
        raise UserError(
            f"hydra/sweeper=optuna: {error.name} is not installed; {install(required('tune'))}"
        ) from None
    return Search


def _parted(arguments: list[str], method: str) -> tuple[list[str], dict[str, Tune]]:
    """What is the same in every trial, and key -> its range: those typed, or without any the
    method's own. Raises UserError."""
    found = parsed(arguments)
    check_sections(found)
    ranges = {}
    for key, one in found.items():
        line, of = str(one.input_line), one.value()
        if isinstance(of, IntervalSweep):
            ranges[key] = Tune("log" if "log" in of.tags else "uniform", (of.start, of.end))
        elif one.is_sweep_override() and key in ("data", "method", "seed"):
            raise UserError(f"{as_typed([line])[0]}: a search is of one data, one method, one seed")
        elif one.is_sweep_override():
            ranges[key] = Tune("choice", tuple(one.sweep_string_iterator()))
    fixed = [str(one.input_line) for key, one in found.items() if key not in ranges]
    if not ranges:
        ranges = {key: of for key, of in own_ranges(method).items() if key not in found}
    if not ranges:
        raise UserError(
            f"method={method}: has no key to search for but those typed; give a range, as "
            "'training.learning_rate=tag(log,interval(0.001,0.1))'"
        )
    return fixed, ranges


def _written(values: Mapping[str, Any]) -> list[str]:
    """A trial's values as overrides."""
    return [setting(key, value) for key, value in values.items()]
