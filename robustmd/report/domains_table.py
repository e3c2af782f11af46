"""domains.csv: one line a method and domain, for data sets with too many for columns."""

import csv
import io
import math
from collections.abc import Iterator

from robustmd.report.aggregate import Group, Section
from robustmd.report.estimate import SpreadKind, means_and_spreads
from robustmd.report.quantities import Quantity
from robustmd.report.table import measured_as, where
from robustmd.report.worst_domain import worst_counts
from robustmd.runs.run import Run

NAME = "domains.csv"


def domains_csv(section: Section, spread: SpreadKind) -> str:
    """Losses [nats] and accuracies [percent] of each domain with every digit; `worst_in`: in how
    many runs it has the lowest test accuracy; `weight_mean`: of p_k after the last update, over the
    runs that recorded it. Unseen domains come last, named as such."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [quantity.measure for quantity in of_domain("")]
    numbers = [f"{name}_{part}" for name in names for part in ("mean", spread)]
    writer.writerow(["method", "domain", "n", *numbers, "worst_in", "weight_mean"])
    places = [*((name, False) for name in section.domains), *((n, True) for n in section.unseen)]
    for group in section.groups:
        weights = mean_weights(group)
        columns = [quantity for place in places for quantity in of_domain(*place)]
        for label, quantities in measured_as(group, columns):
            counts = worst_counts(group, quantities[-1].split)
            width = len(names)
            for place, (name, is_unseen) in enumerate(places):
                own = quantities[place * width : (place + 1) * width]
                values = means_and_spreads(map(group.estimate, own), spread)
                last = ("", "") if is_unseen else (counts[name], weights.get(name, ""))
                writer.writerow([label, where(own[0]), len(group.runs), *values, *last])
    return out.getvalue()


def of_domain(name: str, unseen: bool = False) -> tuple[Quantity, ...]:
    """Loss and accuracy of one domain on train, then on test."""
    return tuple(
        Quantity(kind, s, name, unseen=unseen)  # type: ignore[arg-type]
        for s in ("train", "test")
        for kind in ("loss", "accuracy")
    )


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
