"""The static front: fixed weights against methods that learn theirs. Does the adversary find what
the best fixed weights would?"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from robustmd.registry import METHODS
from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SpreadKind, estimate_cell
from robustmd.report.names import clean, domains_text, is_many
from robustmd.report.paired import Comparison, compared
from robustmd.report.quantities import LOSS, WORST_TRAIN_LOSS, Quantity
from robustmd.report.settings_key import Settings
from robustmd.report.sheet import Cell, Field, Sheet, field, make_sheet

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
    those learned methods that share a seed with it − it, in worst training loss [nats]."""

    domains: tuple[str, ...]
    points: tuple[Fixed, ...]
    learned: tuple[Group, ...]
    best: Fixed
    against: tuple[Comparison, ...]

    @property
    def answer(self) -> str:
        """One sentence, with numbers."""
        loss = self.best.group.estimate(WORST_TRAIN_LOSS)
        best = (
            f"Does the adversary find what the best fixed weights would? The best of "
            f"{len(self.points)} fixed weights has p = {self.best.text} over "
            f"{clean(domains_text(self.domains))} and a worst training loss of {loss.mean:.3g} "
            f"nats (n = {loss.n})"
        )
        if not self.against:
            return f"{best}; no learned method has a seed in common with it."
        alike = sum(one.word in ("better", "equivalent") for one in self.against)
        worse = sum(one.word == "worse" for one in self.against)
        return (
            f"{best}; of {len(self.against)} learned methods {alike} are better or equivalent and "
            f"{worse} worse, by the paired differences, method − best fixed, in nats with 95 % t "
            f"intervals: {'; '.join(map(_told, self.against))}."
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
    return Front(domains, points, learned, best, tuple(filter(None, against)))


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
    """Every point and every learned method, for a CSV file: losses [nats] of each domain, their
    mean and the worst, on train and test; the difference to the best fixed weights is in worst
    training loss."""
    against = {one.method: one for one in front.against}
    rows = [(one.group, one) for one in front.points] + [(group, None) for group in front.learned]

    def weights(row: tuple[Group, Fixed | None]) -> Cell:
        group, point = row
        if point is None:
            return Cell(values=("learned", "", len(group.runs), None))
        is_best = "yes" if point is front.best else "no"
        return Cell(values=("fixed", " ".join(map(str, point.weights)), len(group.runs), is_best))

    def difference(row: tuple[Group, Fixed | None]) -> Cell:
        one = None if row[1] else against.get(row[0].label)
        if one is None:
            return Cell(values=(None,) * 4)
        return Cell(
            values=(one.difference.mean, *(one.difference.interval or (None, None)), one.word)
        )

    fields = [
        field(None, lambda row: row[0].label, "method"),
        field(None, weights, "kind", "weights", "n", "best_fixed"),
        *(_losses(quantity, spread) for quantity in _quantities(front.domains)),
        field(None, difference, "difference_to_best", "ci95_low", "ci95_high", "verdict"),
    ]
    return make_sheet("static front", rows, fields)


def _losses(quantity: Quantity, spread: SpreadKind) -> Field:
    def cell(row: tuple[Group, Fixed | None]) -> Cell:
        return estimate_cell(row[0].estimate(quantity), LOSS, spread)

    return field(None, cell, f"{quantity.name}_mean", f"{quantity.name}_{spread}")


def _quantities(domains: Sequence[str]) -> list[Quantity]:
    """Each domain's loss, the domains' mean and the worst, on train and on test."""
    of_all = [Quantity("loss", "", domain) for domain in domains]
    of_all += [Quantity("loss", "", over="mean"), Quantity("loss", "")]
    return [replace(one, split=split) for split in ("train", "test") for one in of_all]
