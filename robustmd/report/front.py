"""Fronts. The static front: fixed weights against methods that learn theirs; does the adversary
find what the best fixed weights would? And the methods that no other beats in mean and worst."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import le

from robustmd.registry import METHODS
from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SpreadKind, csv_values
from robustmd.report.names import clean, domains_text, is_many, some_text
from robustmd.report.paired import Comparison, adjusted, compared
from robustmd.report.quantities import (
    MEAN_TEST_ACCURACY,
    WORST_TEST_ACCURACY,
    WORST_TRAIN_LOSS,
    Quantity,
)
from robustmd.report.settings_key import Settings
from robustmd.report.sheet import Cell, Column, Row, Sheet, csv_sheet
from robustmd.report.table import Table

FEWEST = 3  # fixed weights that make a front


@dataclass(frozen=True)
class Fixed:
    """One point of the front: the runs at weights p [K], in the data set's order."""

    group: Group
    weights: tuple[float, ...]

    @property
    def text(self) -> str:
        """ "(0.30, 0.70)"; of many domains "(0.0005 to 0.002)"."""
        if is_many(self.weights):
            return f"({min(self.weights):.2g} to {max(self.weights):.2g})"
        return f"({', '.join(f'{weight:.2f}' for weight in self.weights)})"


@dataclass(frozen=True)
class Front:
    """Points by their weights; `best` has the smallest mean worst training loss of them; `against`:
    those learned methods that share a seed with it − it, in worst training loss."""

    domains: tuple[str, ...]
    points: tuple[Fixed, ...]
    learned: tuple[Group, ...]
    best: Fixed
    against: tuple[Comparison, ...]

    @property
    def answer(self) -> str:
        """One sentence, with numbers."""
        loss = self.best.group.estimate(WORST_TRAIN_LOSS)
        name = self.best.group.runs[0].loss_name
        unit = f" {name.unit}" if name.unit else ""
        best = (
            f"Does the adversary find what the best fixed weights would? The best of "
            f"{len(self.points)} fixed weights has p = {self.best.text} over "
            f"{clean(domains_text(self.domains))} and a worst training loss of {loss.mean:.3g}"
            f"{unit} (n = {loss.n})"
        )
        if not self.against:
            return f"{best}; no learned method has a seed in common with it."
        alike = sum(one.word in ("better", "equivalent") for one in self.against)
        worse = sum(one.word == "worse" for one in self.against)
        return (
            f"{best}; of {len(self.against)} learned methods {alike} are better or equivalent and "
            f"{worse} worse, by the paired differences, method − best fixed,{name.in_unit} with "
            f"95 % t intervals (Holm over them): {'; '.join(map(_told, self.against))}."
        )


def _told(one: Comparison) -> str:
    """ "opt +0.008 [−0.001, +0.017] undecided"."""
    interval = "" if one.difference.interval is None else f" {one.interval_text}"
    return f"{clean(one.method)} {one.mean_text}{interval} {one.word}"


def front(section: Section) -> Front | None:
    """Where at least three fixed weights were trained in the same way; of several such ways the
    one with the most points."""
    alike: dict[Settings, list[Group]] = defaultdict(list)
    for group in section.mixtures:
        alike[group.settings.protocol].append(group)
    found = (_front(groups, section.domains) for groups in alike.values())
    return max(filter(None, found), key=lambda one: len(one.points), default=None)


def _front(groups: Sequence[Group], domains: tuple[str, ...]) -> Front | None:
    by_weights: dict[tuple[float, ...], Group] = {}
    for group in sorted(groups, key=lambda one: -len(one.runs)):
        weights = _weights(group, len(domains))
        if weights is not None:
            by_weights.setdefault(weights, group)
    if len(by_weights) < FEWEST or len(domains) < 2:
        return None
    points = tuple(Fixed(by_weights[weights], weights) for weights in sorted(by_weights))
    best = min(points, key=lambda one: one.group.estimate(WORST_TRAIN_LOSS).mean)
    learned = tuple(group for group in groups if METHODS.flag(group.method, "learns"))
    against = (compared(group, best.group, WORST_TRAIN_LOSS) for group in learned)
    return Front(domains, points, learned, best, adjusted(filter(None, against)))


def _weights(group: Group, count: int) -> tuple[float, ...] | None:
    """Of even: its prior, or 1/K."""
    if group.method != "even":
        return None
    prior = group.runs[0].config["method"].get("prior")
    if prior is None:
        return (1 / count,) * count
    is_list = isinstance(prior, list) and len(prior) == count
    return tuple(map(float, prior)) if is_list else None


def front_sheet(front: Front, spread: SpreadKind) -> Sheet:
    """Every point and every learned method, for a CSV file: losses of each domain, their
    mean and the worst, on train and test; the difference to the best fixed weights is in worst
    training loss."""
    against = {one.method: one for one in front.against}
    own = [Quantity("loss", "", domain) for domain in front.domains]
    own += [Quantity("loss", "", over="mean"), Quantity("loss", "")]
    losses = [replace(one, split=split) for split in ("train", "test") for one in own]
    rows: list[dict[str, object]] = []
    for group, point in (
        *((p.group, p) for p in front.points),
        *((g, None) for g in front.learned),
    ):
        one = None if point else against.get(group.label)
        low, high = (one.difference.interval if one else None) or (None, None)
        row: dict[str, object] = {
            "method": group.label,
            "kind": "fixed" if point else "learned",
            "weights": " ".join(map(str, point.weights)) if point else "",
            "n": len(group.runs),
            "best_fixed": ("yes" if point is front.best else "no") if point else None,
        }
        for loss in losses:
            row |= csv_values(loss.name, group.estimate(loss), spread)
        row |= {"difference_to_best": one.difference.mean if one else None}
        row |= {"ci95_low": low, "ci95_high": high, "verdict": one.word if one else None}
        rows.append(row)
    return csv_sheet("static front", rows)


def unpaired_sheet(table: Table) -> Sheet:
    """A row a method, by the mean over its seeds, whichever they are: the worst and the mean over
    the domains on test, and which rows are at least as good in both and better in one."""
    both = [one.measured_by(table.loss) for one in (WORST_TEST_ACCURACY, MEAN_TEST_ACCURACY)]
    sign = -1 if both[0].metric.better == "larger" else 1
    shown = table.sheet.arranged(
        dict.fromkeys(["method", *(f"{one.name}_mean" for one in both), "n"])
    )

    def costs(line: Row) -> list[float]:
        means = (cell.values[0] for cell in line.cells[1:3])
        return [sign * mean if isinstance(mean, float) else math.inf for mean in means]

    def row(line: Row) -> Row:
        own = costs(line)
        above = [
            other.cells[0].text
            for other in shown.rows
            if costs(other) != own and all(map(le, costs(other), own))
        ]
        text = some_text(above) or "none: on the front"
        return replace(line, cells=(*line.cells, Cell(text, (text,))), warned=False)

    caption = (
        "Unpaired: means over each row's own seeds, on test. A row is dominated by those whose "
        "worst and mean are both at least as good, and not both the same; the others are the "
        "Pareto front. This knows no chance: see ± and the paired differences."
    )
    columns = (*shown.columns, Column("dominated by", ("dominated_by",), "long"))
    rows = tuple(map(row, shown.rows))
    return Sheet("worst against mean, unpaired", columns, rows, caption)
