"""Runs that may be tries of the fair protocol: with a validation split, by what they share."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from robustmd.report.aggregate import Section
from robustmd.report.selection import Selected
from robustmd.report.settings_key import FINGERPRINT, Settings, settings_of
from robustmd.runs.run import Run
from robustmd.settings import TUNED as TUNED_IN_TRAINING

# What a configuration of a method may choose beside the method's own keys; all else is the ground
# that the methods share.
TUNED = tuple(f"training.{key}" for key in TUNED_IN_TRAINING)
DERIVED = ("method.reference", "method.weights")  # taken from other runs: no choice of anybody
PRIOR = "method.prior"  # part of the problem: other weights are another method
Key = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Try:
    """A run of one configuration; `selected` is None where it is not finished."""

    run: Run
    settings: Settings
    selected: Selected | None

    @property
    def ground(self) -> Key:
        apart = ("method.", "evaluation.")
        own = (*TUNED, FINGERPRINT)
        kept = {k: v for k, v in self.settings.items() if k not in own and not k.startswith(apart)}
        return tuple(sorted(kept.items()))

    @property
    def pool(self) -> tuple[str, str | None, Any]:
        """Whose budget it is in: a method's, with its prior and (Individual) its domain."""
        return self.run.method, self.run.domain, self.settings.get(PRIOR)

    @property
    def configuration(self) -> Key:
        return tuple(sorted((key, self.settings.get(key)) for key in tunable(self.settings)))

    @property
    def was_tried(self) -> bool:
        """A run that diverged has had its chance; one that was cut off has not."""
        return self.selected is not None or self.run.status == "diverged"


def tunable(settings: Settings) -> list[str]:
    """Keys that a configuration may choose."""
    own = (key for key in settings if key.startswith("method.") and key not in DERIVED)
    return [*TUNED, *own]


def tries_of(section: Section) -> Iterable[Try]:
    """Runs with a validation split, by row; of two with one configuration and seed the first."""
    for group in section.groups:
        for one in group.selected:
            if "val" in one.splits:
                yield Try(one.run, group.settings, one)
    for problem in section.unfinished:
        if problem.run is not None:
            settings = settings_of(problem.run)
            share = settings.get("data.validation")
            if isinstance(share, float) and share > 0:
                yield Try(problem.run, settings, None)


def of_same_bytes(members: Sequence[Try]) -> Iterable[Try]:
    """Those that read what most of them read; unfinished runs may not have written it down."""
    read = Counter(one.settings.get(FINGERPRINT) for one in members if one.selected is not None)
    if not read:
        return ()
    most = read.most_common(1)[0][0]
    return (one for one in members if one.selected is None or one.settings[FINGERPRINT] == most)


def has_contest(members: Sequence[Try]) -> bool:
    """Whether at least two mixture methods have two configurations or more."""
    by_pool: dict[Any, set[Key]] = defaultdict(set)
    for one in members:
        if one.run.domain is None:
            by_pool[one.pool].add(one.configuration)
    return sum(len(configurations) > 1 for configurations in by_pool.values()) > 1
