"""One domain kept out of training after the other: test accuracy on each, where it was unseen."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from robustmd.report.aggregate import Group, Section, folder_name, labelled
from robustmd.report.estimate import estimate
from robustmd.report.names import clean
from robustmd.report.quantities import Quantity
from robustmd.report.settings_key import Settings
from robustmd.report.table import Row, Table, spread_words
from robustmd.runs.run import LossName

AVERAGE = Quantity("accuracy", "test", over="mean", unseen=True)


class LeaveOneOut(Table):
    """Rows are methods, columns the domains kept out, and their average. Every cell of a row is
    over the seeds that have all of them."""

    @property
    def caption(self) -> str:
        section, metric = self.section, self.columns[-1].metric
        measured = f"{metric.name} [{metric.unit}]" if metric.unit else metric.name
        return (
            f"{section.data}, leave one domain out: a column is the test {measured} on a domain "
            "by runs that kept it out of training, the last the average over the domains, within "
            f"each seed. {spread_words(self)} Every value is of {section.selection.words}, chosen "
            "without the domain kept out; n counts the seeds that have every domain kept out, cfg "
            "the configurations of the method that were run."
        )


def leave_one_out(sections: Sequence[Section]) -> tuple[LeaveOneOut, ...]:
    """A table for each data set where some mixture has, in a common seed, a run with each domain
    kept out, all else the same."""
    by_data: dict[tuple[str, tuple[str, ...], LossName], list[Section]] = defaultdict(list)
    for section in sections:
        if len(section.unseen) == 1:
            run = section.runs[0]
            by_data[run.data, run.measured, run.loss_name].append(section)
    folders = {section.folder.lower() for section in sections}
    found = []
    for (data, domains, loss), members in by_data.items():
        plain = (Quantity("accuracy", "test", name, unseen=True) for name in domains)
        *each, average = (quantity.measured_by(loss) for quantity in (*plain, AVERAGE))
        rows = _rows(members, each)
        if rows:
            place = folder_name(f"{data}-leave-one-out", folders)
            apart = replace(members[0], data=clean(data), folder=place, domains=())
            found.append(LeaveOneOut(apart, (*each, average), rows))
    return tuple(found)


def _rows(sections: Sequence[Section], each: Sequence[Quantity]) -> tuple[Row, ...]:
    """Of the methods with runs of every domain kept out in some seed."""
    by_ground: dict[Settings, dict[str | None, Group]] = defaultdict(dict)
    for section in sections:
        for group in section.mixtures:
            by_ground[group.settings.without("data.unseen")][section.unseen[0]] = group
    named, cells = [], []
    for ground, kept in by_ground.items():
        if kept.keys() == {one.domain for one in each}:
            groups = [kept[one.domain] for one in each]
            seeds = sorted(set.intersection(*(set(group.seeds) for group in groups)))
            if seeds:
                named.append(replace(groups[0], label=groups[0].method, settings=ground))
                values = [group.by_seed(one) for group, one in zip(groups, each, strict=True)]
                cells.append((tuple(seeds), [[of[seed] for seed in seeds] for of in values]))
    return tuple(
        Row(
            labelled(group, named).label,
            seeds,
            (*map(estimate, values), estimate(map(statistics.fmean, zip(*values, strict=True)))),
            configurations=group.configurations,
        )
        for group, (seeds, values) in zip(named, cells, strict=True)
    )
