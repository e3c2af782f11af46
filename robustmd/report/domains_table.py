"""The numbers of each domain: domains.csv where they are many, those of further metrics, and, where
one domain after the other was kept out of training, the test accuracy on each, unseen."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from robustmd.metrics import MEASURED
from robustmd.registry import Metric
from robustmd.report.aggregate import Group, Section, folder_name, labelled, measured_as
from robustmd.report.estimate import SPREAD_WORDS, csv_values, estimate, estimate_cell
from robustmd.report.names import clean, is_many
from robustmd.report.quantities import Quantity
from robustmd.report.selection import further_metrics
from robustmd.report.settings_key import Settings
from robustmd.report.sheet import Cell, Field, Sheet, csv_sheet, field, make_sheet
from robustmd.report.table import Row, Table, spread_words
from robustmd.runs.run import LossName

AVERAGE = Quantity("accuracy", "test", over="mean", unseen=True)


def domains_sheet(section: Section) -> Sheet:
    """For a CSV file losses and accuracies [percent] of each domain; `worst_in`: in how many runs
    it has the lowest test accuracy, or largest loss; `weight_mean`: of p_k after the last update,
    over the runs that recorded it. Unseen domains come last, named as such."""
    both = [Quantity(kind, split) for split in ("train", "test") for kind in MEASURED]
    own = [*dict.fromkeys(quantity.measured_by(section.loss) for quantity in both)]
    domains = [*((name, False) for name in section.domains), *((n, True) for n in section.unseen)]
    rows: list[dict[str, object]] = []
    for group in section.groups:
        weights = _mean_weights(group)
        for label, quantities in measured_as(group, own):
            counts = Counter(one.worst_domain(quantities[-1].split) for one in group.selected)
            for name, unseen in domains:
                of_domain = [replace(one, domain=name, unseen=unseen) for one in quantities]
                row: dict[str, object] = {"method": label, "domain": of_domain[0].where}
                row["n"] = len(group.runs)
                for plain, one in zip(own, of_domain, strict=True):
                    row |= csv_values(plain.measure, group.estimate(one), section.spread)
                row["worst_in"] = None if unseen else counts[name]
                rows.append(row | {"weight_mean": None if unseen else weights.get(name)})
    return csv_sheet(f"domains of {section.data}", rows)


def _mean_weights(group: Group) -> dict[str, float]:
    """{domain: mean over seeds of its weight after the last update}, as far as summary.json's
    `weights` are finite numbers."""
    found: dict[str, list[float]] = defaultdict(list)
    for run in group.runs:
        recorded = run.summary.get("weights")
        for name, value in recorded.items() if isinstance(recorded, dict) else ():
            if isinstance(value, float) and math.isfinite(value):
                found[name].append(value)
    return {name: math.fsum(values) / len(values) for name, values in found.items()}


def further_sheet(section: Section) -> Sheet | None:
    """A row for each metric beside loss and accuracy and each method whose every run measured it on
    its test sets; None where there is none."""
    rows = [
        (group, metric)
        for group in section.groups
        for metric in further_metrics(group.runs[0].summary)
        if all(metric.name in one.further for one in group.selected)
    ]
    rows.sort(key=lambda row: row[1].name)

    def number(title: str | None, name: str, domain: str | None) -> Field:
        def cell(row: tuple[Group, Metric]) -> Cell:
            group, metric = row
            quantity = Quantity(metric.name, "test", domain, recorded=metric)
            return estimate_cell(group.estimate(quantity), metric, section.spread)

        names = f"{name}_mean", f"{name}_{section.spread}"
        return field(title, cell, *names, kind="number", is_worst=domain is None)

    many = is_many(section.domains)
    fields = [
        field("method", lambda row: row[0].label, "method"),
        field("n", lambda row: len(row[0].runs), "n", kind="number"),
        field("metric", lambda row: row[1].name, "metric"),
        field("unit", lambda row: row[1].unit, "unit"),
        *(number(None if many else clean(name), name, name) for name in section.domains),
        number("WORST", "worst", None),
    ]
    measured = "loss" if section.loss.targets == "numbers" else "loss and accuracy"
    caption = (
        f"{clean(section.data)}: what runs measured beside {measured}, on the test sets; "
        f"mean ± {SPREAD_WORDS[section.spread]}; WORST: the worst domain within each run. Every "
        f"value is of {section.selection.words}."
    )
    return make_sheet("further metrics", rows, fields, caption=caption) if rows else None


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
