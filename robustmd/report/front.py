"""The static front: fixed weights against methods that learn theirs; does the adversary find what
the best fixed weights would?"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from robustmd.registry import METHODS
from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import csv_values
from robustmd.report.names import clean, domains_text, is_many
from robustmd.report.paired import Comparison, adjusted, compared
from robustmd.report.quantities import WORST_TRAIN_LOSS, Quantity
from robustmd.report.settings_key import Settings
from robustmd.report.sheet import Sheet, csv_sheet

FEWEST = 3  # fixed weights that make a front
Weights = tuple[float, ...]  # p [K], in the data set's order


@dataclass(frozen=True)
class Front:
    """`points`: the runs at fixed weights, by their weights; `best` of them has the smallest mean
    worst training loss; `against`: those learned methods that share a seed with it − it, in worst
    training loss."""

    section: Section
    points: Mapping[Weights, Group]
    best: Weights
    learned: tuple[Group, ...]
    against: tuple[Comparison, ...]

    @property
    def answer(self) -> str:
        """One sentence, with numbers."""
        name, loss = self.section.loss, self.points[self.best].estimate(WORST_TRAIN_LOSS)
        unit = f" {name.unit}" if name.unit else ""
        best = (
            f"Does the adversary find what the best fixed weights would? The best of "
            f"{len(self.points)} fixed weights has p = {_text(self.best)} over "
            f"{clean(domains_text(self.section.domains))} and a worst training loss of "
            f"{loss.mean:.3g}{unit} (n = {loss.n})"
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


def _text(weights: Weights) -> str:
    """ "(0.30, 0.70)"; of many domains "(0.0005 to 0.002)"."""
    if is_many(weights):
        return f"({min(weights):.2g} to {max(weights):.2g})"
    return f"({', '.join(f'{weight:.2f}' for weight in weights)})"


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
    found = (_front(section, groups) for groups in alike.values())
    return max(filter(None, found), key=lambda one: len(one.points), default=None)


def _front(section: Section, groups: Sequence[Group]) -> Front | None:
    by_weights: dict[Weights, Group] = {}
    for group in sorted(groups, key=lambda one: -len(one.runs)):
        weights = _weights(group, len(section.domains))
        if weights is not None:
            by_weights.setdefault(weights, group)
    if len(by_weights) < FEWEST or len(section.domains) < 2:
        return None
    points = dict(sorted(by_weights.items()))
    best = min(points, key=lambda weights: points[weights].estimate(WORST_TRAIN_LOSS).mean)
    learned = tuple(group for group in groups if METHODS.flag(group.method, "learns"))
    against = (compared(group, points[best], WORST_TRAIN_LOSS) for group in learned)
    return Front(section, points, best, learned, adjusted(filter(None, against)))


def _weights(group: Group, count: int) -> Weights | None:
    """Of fixed weights that are a key (even): its prior, or 1/K."""
    if METHODS.flag(group.method, "learns") or "method.prior" not in group.settings:
        return None
    prior = group.runs[0].config["method"].get("prior")
    if prior is None:
        return (1 / count,) * count
    is_list = isinstance(prior, list) and len(prior) == count
    return tuple(map(float, prior)) if is_list else None


def front_sheet(front: Front) -> Sheet:
    """Every point and every learned method, for a CSV file: losses of each domain, their
    mean and the worst, on train and test; the difference to the best fixed weights is in worst
    training loss."""
    spread, against = front.section.spread, {one.method: one for one in front.against}
    own = [Quantity("loss", "", domain) for domain in front.section.domains]
    own += [Quantity("loss", "", over="mean"), Quantity("loss", "")]
    losses = [replace(one, split=split) for split in ("train", "test") for one in own]
    rows: list[dict[str, object]] = []
    fixed = [(group, weights) for weights, group in front.points.items()]
    for group, weights in (*fixed, *((group, None) for group in front.learned)):
        one = None if weights else against.get(group.label)
        low, high = (one.difference.interval if one else None) or (None, None)
        row: dict[str, object] = {
            "method": group.label,
            "kind": "fixed" if weights else "learned",
            "weights": " ".join(map(str, weights or ())),
            "n": len(group.runs),
            "best_fixed": ("yes" if weights == front.best else "no") if weights else None,
        }
        for loss in losses:
            row |= csv_values(loss.name, group.estimate(loss), spread)
        row |= {"difference_to_best": one.difference.mean if one else None}
        row |= {"ci95_low": low, "ci95_high": high, "verdict": one.word if one else None}
        rows.append(row)
    return csv_sheet("static front", rows)
