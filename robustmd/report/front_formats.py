"""The static front as CSV: every point and every learned method with its losses."""

import csv
import io

from robustmd.report.estimate import SpreadKind, means_and_spreads
from robustmd.report.front import Front
from robustmd.report.names import clean
from robustmd.report.quantities import Quantity


def front_csv(front: Front, spread: SpreadKind) -> str:
    """Losses [nats] of each domain, their mean and the worst, on train and test; the difference to
    the best fixed weights is in worst training loss."""
    quantities = loss_quantities(front.domains)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ["method", "kind", "weights", "n", "best_fixed"]
    head += [f"{clean(q.name)}_{part}" for q in quantities for part in ("mean", spread)]
    writer.writerow([*head, "difference_to_best", "ci95_low", "ci95_high", "verdict"])
    for point in front.points:
        weights = " ".join(map(str, point.weights))
        is_best = "yes" if point is front.best else "no"
        numbers = means_and_spreads(map(point.group.estimate, quantities), spread)
        names = [point.group.label, "fixed", weights, len(point.group.runs), is_best]
        writer.writerow([*names, *numbers, "", "", "", ""])
    told = {id(one.group): one for one in front.against}
    for group in front.learned:
        one = told.get(id(group))
        last: tuple[object, ...] = ("", "", "", "")
        if one is not None:
            last = (one.difference.mean, *(one.difference.interval or ("", "")), one.word)
        numbers = means_and_spreads(map(group.estimate, quantities), spread)
        writer.writerow([group.label, "learned", "", len(group.runs), "", *numbers, *last])
    return out.getvalue()


def loss_quantities(domains: tuple[str, ...]) -> tuple[Quantity, ...]:
    """Each domain's, the domains' mean and the worst, on train and on test."""
    return tuple(
        quantity
        for split in ("train", "test")
        for quantity in (
            *(Quantity("loss", split, domain) for domain in domains),
            Quantity("loss", split, over="mean"),
            Quantity("loss", split),
        )
    )
