"""Tuning by the validation split: the runs that tried a configuration of a method, and which of
them each seed takes."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from robustmd.config.settings import TUNED as TUNED_IN_TRAINING
from robustmd.report.aggregate import Section
from robustmd.report.compute import total_seconds
from robustmd.report.names import clean
from robustmd.report.quantities import Quantity
from robustmd.report.selection import Selected
from robustmd.report.settings_key import FINGERPRINT, Settings, describe, differing, settings_of
from robustmd.runs.run import Run

# What a configuration of a method may choose beside the method's own keys; all else is the ground
# that the methods share.
TUNED = tuple(f"training.{key}" for key in TUNED_IN_TRAINING)
DERIVED = ("method.reference", "method.weights")  # taken from other runs: no choice of anybody
PRIOR = "method.prior"  # part of the problem: other weights are another method
WORST_VAL_LOSS = Quantity("loss", "val")
Pool = tuple[str, str | None, Any]  # a method, with its domain (Individual) and its prior


@dataclass(frozen=True)
class Try:
    """A run of one configuration; `selected` is None where it is not finished."""

    run: Run
    settings: Settings
    selected: Selected | None

    @property
    def ground(self) -> Settings:
        return self.settings.protocol.without(*TUNED, FINGERPRINT)

    @property
    def pool(self) -> Pool:
        """Whose budget it is in."""
        return self.run.method, self.run.domain, self.settings.get(PRIOR)

    @property
    def configuration(self) -> Settings:
        return Settings({key: self.settings.get(key) for key in self.tunable})

    @property
    def tunable(self) -> list[str]:
        """Keys that a configuration may choose."""
        own = (key for key in self.settings if key.startswith("method.") and key not in DERIVED)
        return [*TUNED, *own]

    @property
    def was_tried(self) -> bool:
        """A run that diverged has had its chance; one that was cut off has not."""
        return self.selected is not None or self.run.status == "diverged"


@dataclass(frozen=True)
class Choice:
    """What one seed measures a method by. `val_loss`: max_k f_k on the validation split [nats], the
    smallest of the method's configurations at this seed; `configuration`: "learning_rate=0.02 λ=1".
    """

    selected: Selected
    configuration: str
    val_loss: float

    @property
    def seed(self) -> int:
        return self.selected.seed


@dataclass(frozen=True)
class Tuned:
    """One method's budget, and what it bought.

    `configurations`: different ones, over all seeds; `unfinished`: runs that diverged, failed or
    did not end; `seconds` of all runs, at least this where not `is_complete`; `left_out`: seeds
    without a choice, and why.
    """

    label: str
    method: str
    configurations: int
    runs: int
    unfinished: int
    seconds: float
    is_complete: bool
    choices: tuple[Choice, ...]
    left_out: tuple[str, ...]


def tries_of(section: Section) -> Iterator[Try]:
    """Runs with a validation split, by row; of two with one configuration and seed the first."""
    for group in section.groups:
        for one in group.selected:
            if "val" in one.splits:
                yield Try(one.run, group.settings, one)
    for run in (problem.run for problem in section.unfinished):
        if run is not None:
            settings = settings_of(run)
            share = settings.get("data.validation")
            if isinstance(share, float) and share > 0:
                yield Try(run, settings, None)


def pools_of(members: Sequence[Try]) -> dict[Pool, list[Try]]:
    """By method those that read what most of them read; unfinished runs may not have written it
    down."""
    read = Counter(one.settings.get(FINGERPRINT) for one in members if one.selected is not None)
    most = next((bytes_read for bytes_read, _ in read.most_common(1)), None)
    pools: dict[Pool, list[Try]] = defaultdict(list)
    for one in members:
        if one.selected is None or one.settings.get(FINGERPRINT) == most:
            pools[one.pool].append(one)
    return pools if read else {}


def has_contest(pools: dict[Pool, list[Try]]) -> bool:
    """Whether at least two mixture methods have two configurations or more."""
    mixtures = (pool for (_, domain, _), pool in pools.items() if domain is None)
    return sum(len({one.configuration for one in pool}) > 1 for pool in mixtures) > 1


def tuned(pool: Sequence[Try]) -> Tuned:
    """The budget of one method and the choice of every seed that had all of it."""
    count = len({one.configuration for one in pool})
    varying = differing(one.settings for one in pool)
    keys = [key for key in pool[0].tunable if key in varying]
    choices, left_out = [], []
    for seed in sorted({one.run.seed for one in pool}):
        tried: dict[Settings, Try] = {}
        for one in pool:
            if one.run.seed == seed and one.was_tried:
                tried.setdefault(one.configuration, one)
        best = _best(tried, keys)
        if len(tried) < count:
            why = f"{len(tried)} of {count} configurations have a run that came to an end"
            left_out.append(f"seed {seed} is not in it: {why}")
        elif best is None:
            left_out.append(f"seed {seed} is not in it: all configurations diverged")
        else:
            choices.append(best)
    run, prior = pool[0].run, pool[0].settings.get(PRIOR)
    return Tuned(
        label=clean(run.label if prior is None else f"{run.label} prior={prior}"),
        method=run.method,
        configurations=count,
        runs=len(pool),
        unfinished=sum(one.selected is None for one in pool),
        seconds=sum(total_seconds(one.run) for one in pool),
        is_complete=all("total" in one.run.seconds for one in pool),
        choices=tuple(choices),
        left_out=tuple(left_out),
    )


def _best(tried: dict[Settings, Try], keys: Sequence[str]) -> Choice | None:
    """argmin over configurations of max_k f_k on the validation split; of equals the first."""
    found = [
        Choice(one.selected, clean(describe(one.settings, keys)), WORST_VAL_LOSS.of(one.selected))
        for _, one in sorted(tried.items(), key=lambda item: str(sorted(item[0].items())))
        if one.selected is not None
    ]
    known = [one for one in found if math.isfinite(one.val_loss)]
    return min(known, key=lambda one: one.val_loss, default=None)
