"""Losses and accuracies over the iterations: worst case, best case, how far they lie apart."""

from dataclasses import replace

from robustmd.report.aggregate import Group, Section
from robustmd.report.figures.curves import (
    best_loss,
    loss_quantiles,
    loss_range,
    middle_range,
    worst_accuracy,
    worst_loss,
)
from robustmd.report.figures.curves import discrepancy as first_minus_last
from robustmd.report.figures.drawing import MOST_PANELS, Drawing, chosen
from robustmd.report.figures.figure_data import FigureData, band
from robustmd.report.figures.panels import Band, Line, Panel
from robustmd.report.names import is_many, some_text
from robustmd.report.numbers import range_text
from robustmd.report.quantities import UNSEEN
from robustmd.report.style import line_styles, place_style

WORST = "Largest training loss over the domains, max_k f_k(W_t), at every measured iteration."
PART = " Measurements before the last may take a fixed random part of the training set."
RANGE = "largest − smallest loss [nats]"
YLABEL = "worst-case training loss [nats]"
TRAINING = "training loss [nats]"


def worst_case(data: FigureData) -> Drawing | None:
    """The paper's Fig. 2: individual models and mixtures in panels of their own, each with its own
    log axis: an individual model's worst loss may be a hundred times a mixture's."""
    section = data.section
    parts = (("individual models", section.individuals), ("mixtures", section.mixtures))
    panels = [
        Panel(title, YLABEL, data.lines(chosen(section, groups), worst_loss), log=True)
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
    groups = chosen(section, section.groups)
    individuals = [group for group in groups if group.domain is not None]
    mixtures = [group for group in groups if group.domain is None]
    thin = [style | {"alpha": 0.6, "linewidth": 1.0} for style in line_styles(individuals)]
    styles = [*thin, *line_styles(mixtures)]
    lines = data.lines([*individuals, *mixtures], worst_loss, styles=styles)
    if not section.individuals or not section.mixtures or not lines:
        return None
    return data.drawing(
        "worst_case_training_loss_together",
        "Worst-case training loss, all methods",
        f"{WORST} All methods on one log axis; individual models thin.",
        [Panel("all methods", YLABEL, lines, log=True)],
        section.groups,
        more=PART,
    )


def unseen_accuracy(data: FigureData) -> Drawing | None:
    """Domains that train and those kept out, apart; None where no domain is unseen."""
    section = data.section
    groups = chosen(section, section.groups)
    trained = data.lines(groups, lambda trace: worst_accuracy(trace.run.history))
    unseen = data.lines(groups, lambda trace: worst_accuracy(trace.run.unseen_history))
    if not section.unseen or not trained or not unseen:
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


def best_and_worst(data: FigureData) -> Drawing | None:
    """The paper's figure of the noise tasks, two panels with one axis: the distance between a
    method's two lines is what its domains lie apart. With two domains the discrepancy has both."""
    section = data.section
    groups = chosen(section, section.mixtures)
    worst, best = data.lines(groups, worst_loss), data.lines(groups, best_loss)
    if len(section.domains) < 3 or not worst:
        return None
    return data.drawing(
        "best_and_worst_training_loss",
        "Best and worst training loss",
        "Largest (left) and smallest (right) training loss over the "
        f"{len(section.domains)} domains, within each run, on one log axis.",
        [
            Panel("worst domain", TRAINING, worst, log=True),
            Panel("best domain", TRAINING, best, log=True),
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
    groups = chosen(section, section.mixtures)
    gaps = data.lines(groups, loss_range)
    if len(section.domains) < 2 or not gaps:
        return None
    right = Panel("largest − smallest, within each run", RANGE, gaps, log=True)
    if is_many(section.domains):
        what = (
            f"How far the training losses of the {len(section.domains):,} domains lie apart within "
            "each run. Left: their 90 % minus their 10 % quantile; right: the largest minus the "
            "smallest; log axes."
        )
        title, ylabel = "90 % − 10 % quantile, within each run", "difference of losses [nats]"
        left = Panel(title, ylabel, data.lines(groups, middle_range), log=True)
    else:
        what = (
            f"Left: f_a(W_t) − f_b(W_t) with a = {section.domains[0]}, the first, and "
            f"b = {section.domains[-1]}, the last domain of the data set. Right: the largest minus "
            "the smallest training loss over the domains, within each run, on a log axis."
        )
        title, ylabel = "signed, first − last domain", of_two_domains("f", section, " [nats]")
        left = Panel(title, ylabel, data.lines(groups, first_minus_last), zero=True)
    name, title = "discrepancy", "Discrepancy of the training losses"
    return data.drawing(name, title, what, [left, right], section.mixtures, more=PART)


def of_two_domains(letter: str, section: Section, unit: str = "") -> str:
    """ "f(mnist) − f(svhn) [nats]": of the first and the last domain."""
    ends = (section.domains[0], section.domains[-1])
    first, last = (name if len(name) <= 12 else f"{name[:11]}…" for name in ends)
    return f"{letter}({first}) − {letter}({last}){unit}"


def over_domains(data: FigureData) -> Drawing | None:
    """Of many domains the median, the middle and the worst; one panel for each method."""
    section = data.section
    groups = chosen(section, section.mixtures, MOST_PANELS)
    panels = [_quantiles(data, group) for group in groups]
    panels = [panel for panel in panels if len(panel.lines[0].band)]
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
        shown=panels,
        bands=f"Each is taken within a run, then averaged over n = {n} seeds; log axis.",
        more=PART,
        share_y=True,
    )


def _quantiles(data: FigureData, group: Group) -> Panel:
    def mean(share: float) -> Band:
        curves = [(t.iterations, loss_quantiles(t, (share,))[0]) for t in data.of(group)]
        return band([curve for curve in curves if len(curve[0])], "std")

    low, median, high, worst = map(mean, (0.1, 0.5, 0.9, 1.0))
    middle = replace(
        median, n=len(group.runs[0].domains), low=low.mean, high=high.mean, least=low.mean
    )
    alone = replace(worst, n=1, low=worst.mean, high=worst.mean, least=worst.mean)
    lines = Line("worst", alone, place_style(2)), Line("median", middle, place_style(1))
    return Panel(group.label, TRAINING, lines, log=True)
