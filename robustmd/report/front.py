"""The static front: fixed weights against methods that learn theirs. Does the adversary find what
the best fixed weights would?"""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from robustmd.registry import METHODS
from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SpreadKind
from robustmd.report.names import clean, domains_text, is_many
from robustmd.report.numbers import difference_text, estimate_cell, margin
from robustmd.report.quantities import LOSS, WORST_TRAIN_LOSS, Quantity
from robustmd.report.settings_key import frozen, protocol
from robustmd.report.sheet import Cell, Field, Sheet, field, make_sheet
from robustmd.report.verdict import Difference, Word, difference, sign_flip_p, word

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
class Against:
    """A learned method − the best fixed weights in worst training loss [nats], paired by seed."""

    group: Group
    difference: Difference
    word: Word

    @property
    def text(self) -> str:
        """ "opt +0.008 [−0.001, +0.017] undecided"."""
        mean, interval = difference_text(LOSS, self.difference.mean), ""
        if self.difference.interval is not None:
            low, high = (difference_text(LOSS, end) for end in self.difference.interval)
            interval = f" [{low}, {high}]"
        return f"{clean(self.group.label)} {mean}{interval} {self.word}"


@dataclass(frozen=True)
class Front:
    """Points by their weights; `best` has the smallest mean worst training loss of them; `against`
    has those learned methods that share a seed with it."""

    domains: tuple[str, ...]
    points: tuple[Fixed, ...]
    learned: tuple[Group, ...]
    best: Fixed
    against: tuple[Against, ...]

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
        told = "; ".join(one.text for one in self.against)
        return (
            f"{best}; of {len(self.against)} learned methods {alike} are better or equivalent and "
            f"{worse} worse, by the paired differences, method − best fixed, in nats with 95 % t "
            f"intervals: {told}."
        )


def front(section: Section) -> Front | None:
    """Where at least three fixed weights were trained in the same way; of several such ways the
    one with the most points."""
    alike: dict[object, list[Group]] = defaultdict(list)
    for group in section.mixtures:
        alike[frozen(protocol(group.settings))].append(group)
    found = [_front(groups, section.domains) for groups in alike.values()]
    return max(
        (one for one in found if one is not None), key=lambda one: len(one.points), default=None
    )


def _front(groups: Sequence[Group], domains: tuple[str, ...]) -> Front | None:
    by_weights: dict[tuple[float, ...], Group] = {}
    for group in groups:
        weights = _weights(group, len(domains))
        if weights is not None:
            known = by_weights.get(weights)
            if known is None or len(known.runs) < len(group.runs):
                by_weights[weights] = group
    if len(by_weights) < FEWEST or len(domains) < 2:
        return None
    points = tuple(Fixed(by_weights[weights], weights) for weights in sorted(by_weights))
    best = min(points, key=lambda one: one.group.estimate(WORST_TRAIN_LOSS).mean)
    learned = tuple(group for group in groups if METHODS.flag(group.method, "learns"))
    against = tuple(one for group in learned if (one := _against(group, best.group)) is not None)
    return Front(domains, points, learned, best, against)


def _weights(group: Group, count: int) -> tuple[float, ...] | None:
    """Of even: its prior, or 1/K."""
    if group.method != "even":
        return None
    prior = group.runs[0].config["method"].get("prior")
    if prior is None:
        return (1 / count,) * count
    is_list = isinstance(prior, list) and len(prior) == count
    return tuple(map(float, prior)) if is_list else None


def _against(group: Group, best: Group) -> Against | None:
    pairs = group.beside(best, WORST_TRAIN_LOSS).values()
    if not pairs:
        return None
    paired = [ours - theirs for ours, theirs in pairs]
    found, within = (
        difference(paired),
        margin(LOSS, statistics.fmean(theirs for _, theirs in pairs)),
    )
    said = word(found, sign_flip_p(paired), within, better=LOSS.better)
    return Against(group, found, said)


def front_sheet(front: Front, spread: SpreadKind) -> Sheet:
    """Every point and every learned method, for a CSV file: losses [nats] of each domain, their
    mean and the worst, on train and test; the difference to the best fixed weights is in worst
    training loss."""
    fixed = {id(point.group): point for point in front.points}
    told = {id(one.group): one for one in front.against}

    def weights(group: Group) -> str:
        point = fixed.get(id(group))
        return "" if point is None else " ".join(map(str, point.weights))

    def is_best(group: Group) -> str | None:
        if id(group) not in fixed:
            return None
        return "yes" if group is front.best.group else "no"

    def against(group: Group) -> Cell:
        one = told.get(id(group))
        if one is None:
            return Cell(values=(None,) * 4)
        low, high = one.difference.interval or (None, None)
        return Cell(values=(one.difference.mean, low, high, one.word))

    fields = [
        field(None, lambda group: group.label, "method"),
        field(None, lambda group: "fixed" if id(group) in fixed else "learned", "kind"),
        field(None, weights, "weights"),
        field(None, lambda group: len(group.runs), "n"),
        field(None, is_best, "best_fixed"),
        *(_losses(quantity, spread) for quantity in _quantities(front.domains)),
        field(None, against, "difference_to_best", "ci95_low", "ci95_high", "verdict"),
    ]
    groups = (*(point.group for point in front.points), *front.learned)
    return make_sheet("static front", groups, fields)


def _losses(quantity: Quantity, spread: SpreadKind) -> Field:
    names = (f"{quantity.name}_mean", f"{quantity.name}_{spread}")
    return field(None, lambda group: estimate_cell(group.estimate(quantity), LOSS, spread), *names)


def _quantities(domains: Sequence[str]) -> list[Quantity]:
    """Each domain's loss, the domains' mean and the worst, on train and on test."""
    return [
        quantity
        for split in ("train", "test")
        for quantity in (
            *(Quantity("loss", split, domain) for domain in domains),
            Quantity("loss", split, over="mean"),
            Quantity("loss", split),
        )
    ]
