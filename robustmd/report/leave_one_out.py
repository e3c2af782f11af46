"""One domain kept out of training after the other: test accuracy on each, where it was unseen."""

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from robustmd.report.aggregate import Group, Section, folder_name, labelled
from robustmd.report.estimate import SpreadKind, estimate
from robustmd.report.names import clean
from robustmd.report.quantities import Quantity
from robustmd.report.selection import Selection
from robustmd.report.settings_key import Settings, frozen
from robustmd.report.table import Row, Table, spread_words

UNSEEN_KEY = "data.unseen"
AVERAGE = Quantity("accuracy", "test", over="mean", unseen=True)
_KeptOut = dict[str, Group]  # the group of each domain that was kept out


@dataclass(frozen=True)
class LeaveOneOut(Table):
    """Rows are methods, columns the domains kept out, and their average. Every cell of a row is
    over the seeds that have all of them. `folder` is fit for a path."""

    folder: str = ""

    @property
    def caption(self) -> str:
        return (
            f"{self.data}, leave one domain out: a column is the test accuracy [%] on a domain by "
            "runs that kept it out of training, the last the average over the domains, within each "
            f"seed. {spread_words(self)} Every value is of {self.selection.words}, chosen without "
            "the domain kept out; n counts the seeds that have every domain kept out, cfg the "
            "configurations of the method that were run."
        )


def leave_one_out(
    sections: Sequence[Section], selection: Selection, spread: SpreadKind
) -> tuple[LeaveOneOut, ...]:
    """A table for each data set where some mixture has, in a common seed, a run with each domain
    kept out, all else the same."""
    by_data: dict[tuple[str, tuple[str, ...]], list[Section]] = {}
    for section in sections:
        if len(section.unseen) == 1:
            run = section.runs[0]
            by_data.setdefault((run.data, run.measured), []).append(section)
    folders = {section.folder.lower() for section in sections}
    found = []
    for (data, domains), members in by_data.items():
        rows = tuple(_row(group, kept, domains) for group, kept in _methods(members, domains))
        if rows:
            each = (Quantity("accuracy", "test", name, unseen=True) for name in domains)
            folder = folder_name(f"{data}-leave-one-out", folders)
            columns, name = (*each, AVERAGE), clean(data)
            found.append(LeaveOneOut(name, (), columns, rows, selection, spread, folder=folder))
    return tuple(found)


def _methods(sections: Sequence[Section], domains: Sequence[str]) -> list[tuple[Group, _KeptOut]]:
    """Those with runs of every domain kept out, each with a group that names it."""
    by_ground: dict[object, _KeptOut] = {}
    for section in sections:
        for group in section.mixtures:
            kept = by_ground.setdefault(frozen(_ground(group.settings)), {})
            kept[section.unseen[0]] = group
    whole = [kept for kept in by_ground.values() if set(kept) == set(domains) and _seeds(kept)]
    named = [_plain(kept[domains[0]]) for kept in whole]
    return [(labelled(group, named), kept) for group, kept in zip(named, whole, strict=True)]


def _ground(settings: Settings) -> Settings:
    """All but what was kept out."""
    return {key: value for key, value in settings.items() if key != UNSEEN_KEY}


def _plain(group: Group) -> Group:
    return dataclasses.replace(group, label=group.method, settings=_ground(group.settings))


def _seeds(kept: Mapping[str, Group]) -> tuple[int, ...]:
    """Those that have every domain kept out."""
    return tuple(sorted(set.intersection(*(set(group.seeds) for group in kept.values()))))


def _row(named: Group, kept: _KeptOut, domains: Iterable[str]) -> Row:
    seeds = _seeds(kept)
    by_domain = []
    for name in domains:
        values = kept[name].by_seed(Quantity("accuracy", "test", name, unseen=True))
        by_domain.append([values[seed] for seed in seeds])
    averages = map(statistics.fmean, zip(*by_domain, strict=True))
    cells = (*map(estimate, by_domain), estimate(averages))
    return Row(named.label, seeds, cells, configurations=named.configurations)
