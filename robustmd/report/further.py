"""The metrics that runs measured beside loss and accuracy, on each domain's test set."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from robustmd.metrics import worst
from robustmd.registry import Metric
from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SPREAD_WORDS, Estimate, SpreadKind, estimate
from robustmd.report.names import clean, is_many
from robustmd.report.numbers import estimate_cell
from robustmd.report.selection import Selected, Selection
from robustmd.report.sheet import NOTHING, Cell, Sheet, field, make_sheet
from robustmd.runs import files
from robustmd.runs.untrusted import Unreadable, read_table

COLUMNS = {"iteration": int, "split": str, "domain": str, "metric": str, "value": float}
SPLIT = "test"
MOST_DECIMALS = 6


@dataclass(frozen=True)
class _Line:
    """One method and metric: its values in each run, [n, K] of n selected measurements."""

    group: Group
    metric: Metric
    values: Mapping[int, np.ndarray]  # by seed

    def over(self, place: int | None) -> Estimate:
        """Of one domain, or of the worst within each measurement, over the seeds."""
        found = self.values.values()
        if place is not None:
            return estimate(float(one[:, place].mean()) for one in found)
        return estimate(float(worst(one, self.metric.better).mean()) for one in found)

    def cell(self, place: int | None, spread: SpreadKind) -> Cell:
        value = self.over(place)
        return estimate_cell(value, self.metric, spread) if math.isfinite(value.mean) else NONE


NONE = Cell(NOTHING, (None, None))


def further_sheet(section: Section, selection: Selection, spread: SpreadKind) -> Sheet | None:
    """A row for each metric and method whose every run measured it; None where there is none.

    What a metric is, its unit and which values are the better ones, is as its run recorded it: the
    module that it came from is not imported.
    """
    lines = [line for group in section.groups for line in _lines(group)]
    if not lines:
        return None
    shown = not is_many(section.domains)
    domains = [
        field(
            clean(domain) if shown else None,
            partial(_Line.cell, place=place, spread=spread),
            f"{domain}_mean",
            f"{domain}_{spread}",
            kind="number",
        )
        for place, domain in enumerate(section.domains)
    ]
    fields = [
        field("method", lambda one: one.group.label, "method"),
        field("n", lambda one: len(one.values), "n", kind="number"),
        field("metric", lambda one: one.metric.name, "metric"),
        field("unit", lambda one: one.metric.unit, "unit"),
        *domains,
        field(
            "WORST",
            partial(_Line.cell, place=None, spread=spread),
            "worst_mean",
            f"worst_{spread}",
            kind="number",
            is_worst=True,
        ),
    ]
    caption = (
        f"{clean(section.data)}: what runs measured beside loss and accuracy, on the test sets; "
        f"mean ± {SPREAD_WORDS[spread]}; WORST: the worst domain within each run. Every value is "
        f"of {selection.words}."
    )
    lines.sort(key=lambda line: line.metric.name)
    return make_sheet("further metrics", lines, fields, caption=caption)


def _lines(group: Group) -> list[_Line]:
    tables = {one.seed: _values(one) for one in group.selected}
    metrics = _recorded(group.runs[0].summary.get("metrics"))
    return [
        _Line(group, metric, {seed: found[metric.name] for seed, found in tables.items()})
        for metric in metrics
        if all(metric.name in found for found in tables.values())
    ]


def _recorded(found: Any) -> list[Metric]:
    """What summary.json says of its metrics, as far as it is sound."""
    metrics = []
    for name, about in found.items() if isinstance(found, dict) else ():
        unit, better, decimals = (
            (about.get(key) for key in ("unit", "better", "decimals"))
            if isinstance(about, dict)
            else (None, None, None)
        )
        sound = isinstance(unit, str) and better in ("smaller", "larger")
        if sound and isinstance(decimals, int) and 0 <= decimals <= MOST_DECIMALS:
            metrics.append(Metric(clean(name), clean(unit), better, decimals, _not_here))  # type: ignore[arg-type]
    return metrics


def _not_here(logits: object, labels: object) -> float:
    raise TypeError("a report measures nothing")


def _values(one: Selected) -> dict[str, np.ndarray]:
    """{metric: [n, K]} at the selected iterations, of the metrics measured on every domain then."""
    try:
        rows = read_table(one.run.path / files.MEASURES, COLUMNS)
    except Unreadable:
        return {}
    times: Sequence[int] = one.iterations(SPLIT)
    places = {(t, domain): (i, k) for i, t in enumerate(times) for domain, k in one.places.items()}
    found: dict[str, np.ndarray] = {}
    for iteration, split, domain, metric, value in rows:
        place = places.get((iteration, domain))
        if split == SPLIT and place is not None:
            blank = np.full((len(times), len(one.domains)), np.nan)
            found.setdefault(clean(metric), blank)[place] = value
    return found
