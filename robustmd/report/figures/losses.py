"""Losses and accuracies over the iterations: worst case, best case, how far they lie apart."""

from collections.abc import Mapping

import pandas as pd

from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import range_text
from robustmd.report.figures.drawing import Drawing, chosen
from robustmd.report.figures.lines import FigureData, Line, Panel, Values
from robustmd.report.names import is_many, some_text
from robustmd.report.quantities import UNSEEN
from robustmd.report.style import line_styles, place_style
from robustmd.runs.run import Series

WORST = "Largest training loss over the domains, max_k f_k(W_t), at every measured iteration."
PART = " Measurements before the last may take a fixed random part of the training set."
RANGE = "largest − smallest loss"  # behind each of them stands the unit
YLABEL = "worst-case training loss"
TRAINING = "training loss"


def worst_case(data: FigureData) -> Drawing | None:
    """The paper's Fig. 2: individual models and mixtures in panels of their own, each with its own
    log axis: an individual model's worst loss may be a hundred times a mixture's."""
    section = data.section
    parts = (("individual models", section.individuals), ("mixtures", section.mixtures))
    panels = [
        Panel(title, YLABEL + data.unit, data.lines(groups, _quantile(data, 1.0)), log=True)
        for title, groups in parts
    ]
    panels = [panel for panel in panels if panel.lines]
    if not panels:
        return None
    return data.drawing(
        "worst_case_training_loss",
        "Worst-case training loss",
        f"{WORST} Individual models and mixtures apart, each on a log axis of its own.",
        panels,
        section.groups,
        more=PART,
    )


def worst_case_together(data: FigureData) -> Drawing | None:
    """All methods in one panel on a log axis; None where there is nothing to bring together."""
    section = data.section
    styles = [style | {"linewidth": 1.0} for style in line_styles(section.individuals)]
    styles += line_styles(section.mixtures)
    groups = (*section.individuals, *section.mixtures)
    lines = data.lines(groups, _quantile(data, 1.0), styles=styles)
    if not section.individuals or not section.mixtures or not lines:
        return None
    return data.drawing(
        "worst_case_training_loss_together",
        "Worst-case training loss, all methods",
        f"{WORST} All methods on one log axis; individual models thin.",
        [Panel("all methods", YLABEL + data.unit, lines, log=True)],
        section.groups,
        more=PART,
    )


def _quantile(data: FigureData, share: float) -> Values:
    """Of the domains' losses within a run; 1.0: the worst domain's."""
    return lambda run: data.losses(run).quantile(share, axis=1)


def apart(data: FigureData, low: float = 0.0, high: float = 1.0) -> Values:
    """How far two quantiles of the domains' losses lie apart within a run; else max_k f_k −
    min_k f_k."""
    return lambda run: _quantile(data, high)(run) - _quantile(data, low)(run)


def unseen_accuracy(data: FigureData) -> Drawing | None:
    """Domains that train and those kept out, apart; None where no domain is unseen."""
    section = data.section
    trained = data.lines(section.groups, lambda run: _accuracy(run.history))
    unseen = data.lines(section.groups, lambda run: _accuracy(run.unseen_history))
    if not section.unseen or not trained or not unseen or section.loss.targets == "numbers":
        return None
    which = f"{'worst of ' if len(section.unseen) > 1 else ''}{some_text(section.unseen)}"
    return data.drawing(
        "unseen_test_accuracy",
        "Test accuracy, trained and unseen",
        "Test accuracy at every measured iteration. Left: the lowest over the domains that train, "
        f"within each run. Right: {which} {UNSEEN}, kept out of training.",
        [
            Panel("worst trained domain", "test accuracy [%]", trained),
            Panel(f"{which} {UNSEEN}", "test accuracy [%]", unseen),
        ],
        section.groups,
        share_y=True,
    )


def _accuracy(history: Mapping[str, Series]) -> pd.Series:
    """The lowest over the domains, on their test sets [%]."""
    test = history.get("test")
    if test is None:
        return pd.Series(dtype=float)
    return pd.Series(test.worst("accuracy"), test.iterations)


def best_and_worst(data: FigureData) -> Drawing | None:
    """The paper's figure of the noise tasks, two panels with one axis: the distance between a
    method's two lines is what its domains lie apart. With two domains the discrepancy has both."""
    section = data.section
    worst = data.lines(section.mixtures, _quantile(data, 1.0))
    best = data.lines(section.mixtures, _quantile(data, 0.0))
    if len(section.domains) < 3 or not worst:
        return None
    return data.drawing(
        "best_and_worst_training_loss",
        "Best and worst training loss",
        "Largest (left) and smallest (right) training loss over the "
        f"{len(section.domains)} domains, within each run, on one log axis.",
        [
            Panel("worst domain", TRAINING + data.unit, worst, log=True),
            Panel("best domain", TRAINING + data.unit, best, log=True),
        ],
        section.mixtures,
        more=PART,
        share_y=True,
    )


def discrepancy(data: FigureData) -> Drawing | None:
    """The paper's f_a − f_b beside the gap between the worst and the best domain on a log axis,
    where late differences can be told apart; of many domains, where two say little, what most of
    them lie apart."""
    section = data.section
    gaps = data.lines(section.mixtures, apart(data))
    if len(section.domains) < 2 or not gaps:
        return None
    if is_many(section.domains):
        said = (
            f"How far the training losses of the {len(section.domains):,} domains lie apart within "
            "each run. Left: their 90 % minus their 10 % quantile; right: the largest minus the "
            "smallest; log axes."
        )
        middle = data.lines(section.mixtures, apart(data, 0.1, 0.9))
        title, ylabel = "90 % − 10 % quantile, within each run", f"difference of losses{data.unit}"
        left = Panel(title, ylabel, middle, log=True)
    else:
        said = (
            f"Left: f_a(W_t) − f_b(W_t) with a = {section.domains[0]}, the first, and "
            f"b = {section.domains[-1]}, the last domain of the data set. Right: the largest minus "
            "the smallest training loss over the domains, within each run, on a log axis."
        )
        lines = data.lines(section.mixtures, lambda run: first_minus_last(data.losses(run)))
        label = of_two_domains("f", section, data.unit)
        left = Panel("signed, first − last domain", label, lines, zero=True)
    right = Panel("largest − smallest, within each run", RANGE + data.unit, gaps, log=True)
    name, title = "discrepancy", "Discrepancy of the training losses"
    return data.drawing(name, title, said, [left, right], section.mixtures, more=PART)


def first_minus_last(by_domain: pd.DataFrame) -> pd.Series:
    """The paper's a − b: of the first and the last domain of the data set."""
    return by_domain.iloc[:, 0] - by_domain.iloc[:, -1]


def of_two_domains(letter: str, section: Section, unit: str = "") -> str:
    """ "f(mnist) − f(svhn) [nats]": of the first and the last domain."""
    ends = (section.domains[0], section.domains[-1])
    first, last = (name if len(name) <= 12 else f"{name[:11]}…" for name in ends)
    return f"{letter}({first}) − {letter}({last}){unit}"


def over_domains(data: FigureData) -> Drawing | None:
    """Of many domains the median, the middle and the worst; one panel for each method."""
    section = data.section
    groups = chosen(section, section.mixtures)
    lines = [(group.label, _quantiles(data, group)) for group in groups]
    panels = [
        Panel(label, TRAINING + data.unit, found, log=True) for label, found in lines if found
    ]
    if not is_many(section.domains) or not panels:
        return None
    n = range_text(len(group.runs) for group in groups)
    return data.drawing(
        "domain_losses",
        "Training losses over the domains",
        f"The {len(section.domains):,} domains' training losses f_k(W_t): the worst, the median, "
        "and from the 10 % to the 90 % quantile over the domains (band).",
        panels,
        section.mixtures,
        shown=len(panels),
        bands=f"Each is taken within a run, then averaged over n = {n} seeds; log axis.",
        more=PART,
        share_y=True,
    )


def _quantiles(data: FigureData, group: Group) -> list[Line]:
    """The worst, and the median in the band of the middle 80 %; means over seeds, none recorded:
    no line."""
    found = [data.line(group, _quantile(data, share), "", {}) for share in (0.1, 0.5, 0.9, 1.0)]
    bands = [line.band["mean"] for line in found if line is not None]
    if not bands:
        return []
    low, median, high, worst = bands
    alone = pd.DataFrame(dict.fromkeys(("mean", "low", "high", "least"), worst))
    middle = pd.DataFrame({"mean": median, "low": low, "high": high, "least": low})
    count = len(group.runs[0].domains)
    return [
        Line("worst", alone, 1, place_style(2)),
        Line("median", middle, count, place_style(1)),
    ]
