"""From single runs to the rows of a table: runs that differ only in the seed are one group."""

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from robustmd.report.estimate import Estimate, estimate
from robustmd.report.names import clean
from robustmd.report.quantities import Quantity
from robustmd.report.settings_key import (
    Settings,
    describe,
    differing,
    frozen,
    protocol,
    settings_of,
)
from robustmd.runs.run import Problem, Run

METHOD_ORDER = (
    "individual",
    "even",
    "oracle",
    "opt",
    "ot",
    "kl",
    "minimax",
    "multiplicative",
    "best_response",
)


@dataclass(frozen=True)
class Group:
    """Runs of one configuration, one a seed, by seed. `label` tells it from those beside it."""

    label: str
    method: str
    domain: str | None
    settings: Settings
    runs: tuple[Run, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.seed for run in self.runs)

    def estimate(self, quantity: Quantity) -> Estimate:
        """Mean and spread of the quantity over this group's seeds."""
        return estimate(quantity.of(run) for run in self.runs)

    def by_seed(self, quantity: Quantity) -> dict[int, float]:
        """The quantity's value in the run of each seed."""
        return {run.seed: quantity.of(run) for run in self.runs}


@dataclass(frozen=True)
class Section:
    """All groups over the same domains of one data set: one table. `folder` is fit for a path."""

    data: str
    folder: str
    domains: tuple[str, ...]
    groups: tuple[Group, ...]

    @property
    def individuals(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.domain is not None)

    @property
    def mixtures(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.domain is None)

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for group in self.groups for run in group.runs)

    def missing_seeds(self) -> list[tuple[Group, tuple[int, ...]]]:
        """Groups that lack seeds which another group has."""
        seeds = sorted({seed for group in self.groups for seed in group.seeds})
        lacking = ((g, tuple(seed for seed in seeds if seed not in g.seeds)) for g in self.groups)
        return [(group, missing) for group, missing in lacking if missing]


def sections(runs: Iterable[Run]) -> tuple[tuple[Section, ...], tuple[Problem, ...]]:
    """Tables by data set and domains, groups in the paper's order; and runs that are there twice.

    Of two runs with the same configuration and seed the first path counts, so that n counts seeds.
    """
    by_table: dict[tuple[str, tuple[str, ...]], list[Run]] = {}
    for run in sorted(runs, key=lambda r: r.path):
        by_table.setdefault((run.data, run.domains), []).append(run)
    folders: set[str] = set()
    found: list[Section] = []
    twice: list[Problem] = []
    for (data, domains), members in sorted(by_table.items()):
        groups, repeated = _groups(members, domains)
        twice += repeated
        found.append(Section(clean(data), _folder(data, folders), domains, groups))
    return tuple(found), tuple(twice)


def _groups(runs: Sequence[Run], domains: Sequence[str]) -> tuple[tuple[Group, ...], list[Problem]]:
    settings = {run.path: settings_of(run) for run in runs}
    by_settings: dict[object, dict[int, Run]] = {}
    twice: list[Problem] = []
    for run in runs:
        by_seed = by_settings.setdefault(frozen(settings[run.path]), {})
        first = by_seed.setdefault(run.seed, run)
        if first is not run:
            where = first.path.relative_to(first.root).as_posix()
            twice.append(Problem(run.path, f"same configuration and seed as {where}", "run", run))
    unlabelled: list[Group] = []
    for by_seed in by_settings.values():
        members = tuple(by_seed[seed] for seed in sorted(by_seed))
        run = members[0]
        unlabelled.append(Group(run.label, run.method, run.domain, settings[run.path], members))
    unlabelled.sort(key=lambda group: _rank(group, domains))
    return tuple(_labelled(group, unlabelled) for group in unlabelled), twice


def _labelled(group: Group, beside: Sequence[Group]) -> Group:
    """Named by its method, what sets it apart from others of its method, and what of data and
    training is not the same in all rows of the table."""
    same_kind = [g for g in beside if (g.method, g.domain) == (group.method, group.domain)]
    of_method = differing(g.settings for g in same_kind)
    of_protocol = differing(protocol(g.settings) for g in beside)
    keys = [key for key in of_method if key not in of_protocol] + of_protocol
    label = " ".join((group.label, describe(group.settings, keys))).strip()
    return dataclasses.replace(group, label=clean(label))


def _rank(group: Group, domains: Sequence[str]) -> tuple[object, ...]:
    known = group.method in METHOD_ORDER
    place = METHOD_ORDER.index(group.method) if known else len(METHOD_ORDER)
    domain = domains.index(group.domain) if group.domain in domains else len(domains)
    lam = group.runs[0].lam
    text = [(key, str(value)) for key, value in frozen(group.settings)]
    return place, group.method, domain, -1.0 if lam is None else lam, text


def _folder(data: str, taken: set[str]) -> str:
    """The data set's name as a folder's, never twice and never out of the report."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in data)
    stem = plain.strip(".")[:80] or "data"
    name = next(
        name
        for name in (stem, *(f"{stem}-{i}" for i in range(2, len(taken) + 3)))
        if name.lower() not in taken
    )
    taken.add(name.lower())
    return name
