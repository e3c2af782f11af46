"""Many domains: which one is the worst, and domains.csv with the numbers of each."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from robustmd.report.aggregate import Group, Section, measured_as
from robustmd.report.estimate import SpreadKind
from robustmd.report.numbers import estimate_cell
from robustmd.report.quantities import Quantity
from robustmd.report.sheet import Cell, Sheet, field, make_sheet
from robustmd.runs.run import MEASURED, Run


@dataclass(frozen=True)
class WorstDomain:
    """`name` has the lowest test accuracy of all domains in `runs` of `of` runs."""

    name: str
    runs: int
    of: int

    @property
    def cell(self) -> Cell:
        """ "rotate_90_sigma_76", beside it "(2 of 3)"; the name alone where there is one run."""
        count = "" if self.of == 1 else f"({self.runs} of {self.of})"
        return Cell(self.name, (self.name, self.runs), count)


def worst_domain(group: Group, split: str = "test") -> WorstDomain:
    """The domain that is the worst in most of the group's runs; of equals the first seed's."""
    (name, runs), *_ = worst_counts(group, split).most_common(1)
    return WorstDomain(name, runs, len(group.selected))


def worst_counts(group: Group, split: str = "test") -> Counter[str]:
    """{domain: in how many runs it is the worst}."""
    return Counter(one.worst_domain(split) for one in group.selected)


@dataclass(frozen=True)
class _Line:
    """One method and domain: the quantities that stand in the columns, and two that may not be."""

    label: str
    group: Group
    quantities: tuple[Quantity, ...]
    worst_in: int | None
    weight: float | None

    def cell(self, place: int, spread: SpreadKind) -> Cell:
        quantity = self.quantities[place]
        return estimate_cell(self.group.estimate(quantity), quantity.metric, spread)


def domains_sheet(section: Section, spread: SpreadKind) -> Sheet:
    """For a CSV file losses [nats] and accuracies [percent] of each domain; `worst_in`: in how many
    runs it has the lowest test accuracy; `weight_mean`: of p_k after the last update, over the runs
    that recorded it. Unseen domains come last, named as such."""
    own = [Quantity(kind, split) for split in ("train", "test") for kind in MEASURED]
    numbers = [
        field(None, partial(_Line.cell, place=i, spread=spread), f"{name}_mean", f"{name}_{spread}")
        for i, name in enumerate(quantity.measure for quantity in own)
    ]
    fields = [
        field(None, lambda one: one.label, "method"),
        field(None, lambda one: one.quantities[0].where, "domain"),
        field(None, lambda one: len(one.group.runs), "n"),
        *numbers,
        field(None, lambda one: one.worst_in, "worst_in"),
        field(None, lambda one: one.weight, "weight_mean"),
    ]
    lines = (line for group in section.groups for line in _lines(group, section, own))
    return make_sheet(f"domains of {section.data}", lines, fields)


def _lines(group: Group, section: Section, own: Sequence[Quantity]) -> Iterator[_Line]:
    weights = mean_weights(group)
    for label, quantities in measured_as(group, own):
        counts = worst_counts(group, quantities[-1].split)
        for name in section.domains:
            of_domain = tuple(replace(one, domain=name) for one in quantities)
            yield _Line(label, group, of_domain, counts[name], weights.get(name))
        for name in section.unseen:
            of_domain = tuple(replace(one, domain=name, unseen=True) for one in quantities)
            yield _Line(label, group, of_domain, None, None)


def mean_weights(group: Group) -> dict[str, float]:
    """{domain: mean over seeds of its weight after the last update}, of those recorded."""
    found: dict[str, list[float]] = {}
    for run in group.runs:
        for name, weight in _weights(run):
            found.setdefault(name, []).append(weight)
    return {name: math.fsum(values) / len(values) for name, values in found.items()}


def _weights(run: Run) -> Iterator[tuple[str, float]]:
    """summary.json's `weights`, as far as they are finite numbers."""
    recorded = run.summary.get("weights")
    if isinstance(recorded, dict):
        for name, value in recorded.items():
            if isinstance(value, float) and math.isfinite(value):
                yield name, value
