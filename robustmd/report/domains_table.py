"""The numbers of each domain: domains.csv where they are many, and those of further metrics."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from robustmd.registry import Metric
from robustmd.report.aggregate import Group, Section, measured_as
from robustmd.report.estimate import SPREAD_WORDS, SpreadKind, estimate_cell
from robustmd.report.names import clean, is_many
from robustmd.report.quantities import Quantity, further_metrics
from robustmd.report.selection import Selection
from robustmd.report.sheet import Cell, Field, Sheet, field, make_sheet
from robustmd.runs.run import MEASURED


@dataclass(frozen=True)
class _Line:
    """One method and domain: the quantities that stand in the columns, and two that may not be."""

    label: str
    group: Group
    quantities: tuple[Quantity, ...]
    worst_in: int | None
    weight: float | None


def domains_sheet(section: Section, spread: SpreadKind) -> Sheet:
    """For a CSV file losses [nats] and accuracies [percent] of each domain; `worst_in`: in how many
    runs it has the lowest test accuracy; `weight_mean`: of p_k after the last update, over the runs
    that recorded it. Unseen domains come last, named as such."""
    own = [Quantity(kind, split) for split in ("train", "test") for kind in MEASURED]

    def number(place: int) -> Field:
        def cell(line: _Line) -> Cell:
            quantity = line.quantities[place]
            return estimate_cell(line.group.estimate(quantity), quantity.metric, spread)

        name = own[place].measure
        return field(None, cell, f"{name}_mean", f"{name}_{spread}")

    fields = [
        field(None, lambda one: one.label, "method"),
        field(None, lambda one: one.quantities[0].where, "domain"),
        field(None, lambda one: len(one.group.runs), "n"),
        *map(number, range(len(own))),
        field(None, lambda one: one.worst_in, "worst_in"),
        field(None, lambda one: one.weight, "weight_mean"),
    ]
    lines = (line for group in section.groups for line in _lines(group, section, own))
    return make_sheet(f"domains of {section.data}", lines, fields)


def _lines(group: Group, section: Section, own: Sequence[Quantity]) -> Iterator[_Line]:
    weights = _mean_weights(group)
    for label, quantities in measured_as(group, own):
        counts = Counter(one.worst_domain(quantities[-1].split) for one in group.selected)
        for name in section.domains:
            of_domain = tuple(replace(one, domain=name) for one in quantities)
            yield _Line(label, group, of_domain, counts[name], weights.get(name))
        for name in section.unseen:
            of_domain = tuple(replace(one, domain=name, unseen=True) for one in quantities)
            yield _Line(label, group, of_domain, None, None)


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


def further_sheet(section: Section, selection: Selection, spread: SpreadKind) -> Sheet | None:
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
            return estimate_cell(group.estimate(quantity), metric, spread)

        names = f"{name}_mean", f"{name}_{spread}"
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
    caption = (
        f"{clean(section.data)}: what runs measured beside loss and accuracy, on the test sets; "
        f"mean ± {SPREAD_WORDS[spread]}; WORST: the worst domain within each run. Every value is "
        f"of {selection.words}."
    )
    return make_sheet("further metrics", rows, fields, caption=caption) if rows else None
