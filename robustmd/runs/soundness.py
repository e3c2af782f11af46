"""May a run's numbers be used? Its metrics.csv against itself and against its summary.json."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from robustmd.errors import listed
from robustmd.runs.reducers import worst
from robustmd.runs.run import Measurement, Run
from robustmd.runs.series import Series
from robustmd.runs.untrusted import MAX_INTEGER, Unreadable

REQUIRED_SPLITS = ("train", "test")
REL_TOL = 1e-5  # the two files may print a number with different digits

Final = Mapping[str, Mapping[str, Measurement]]


def is_integer(value: object) -> bool:
    """A whole number that is no boolean and fits where numbers are kept."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INTEGER


def final_measurement(rows: Sequence[Measurement], run: Run) -> Final:
    """{split: {domain: last row}} at iteration T = summary.json's `iterations`.

    Raises `Unreadable` where metrics.csv does not end at T, lacks a domain of train or test there,
    or holds what cannot be (a loss that is negative or not finite, an accuracy outside 0..100).
    """
    total = run.summary.get("iterations")
    if total is None or not is_integer(total):
        raise Unreadable("summary.json names no number of iterations")
    final: dict[str, dict[str, Measurement]] = {}
    known = frozenset(run.measured)
    for row in rows:
        if row.domain not in known:
            raise Unreadable(f"metrics.csv measures {row.domain!r}, no domain of summary.json")
        if row.iteration > total:
            raise Unreadable(f"metrics.csv goes on to iteration {row.iteration}, past {total}")
        if row.iteration == total:
            if row.domain in final.setdefault(row.split, {}):
                raise Unreadable(f"metrics.csv has {row.split} of {row.domain} at {total} twice")
            final[row.split][row.domain] = row
    for split in dict.fromkeys((*REQUIRED_SPLITS, *final)):
        lacking = [domain for domain in run.measured if domain not in final.get(split, {})]
        if lacking:
            raise Unreadable(
                f"metrics.csv lacks the final measurement (iteration {total}) of {split} on "
                f"{listed(lacking)}"
            )
        for row in final[split].values():
            _check_values(row)
    return final


def _check_values(row: Measurement) -> None:
    if not (math.isfinite(row.loss) and row.loss >= 0 and 0 <= row.accuracy <= 100):
        raise Unreadable(
            f"metrics.csv: final {row.split} of {row.domain} is loss={row.loss}, "
            f"accuracy={row.accuracy}"
        )


def compare_with_summary(final: Final, run: Run) -> None:
    """Raises `Unreadable` where summary.json's `final` or `worst` is not what metrics.csv says."""
    written = run.summary.get("final")
    for split, by_domain in final.items():
        if split not in REQUIRED_SPLITS and isinstance(written, dict) and split not in written:
            continue  # what only metrics.csv has cannot disagree
        for domain, row in by_domain.items():
            for name in ("loss", "accuracy"):
                _same(written, (split, domain, name), getattr(row, name), "final")
    written_worst = run.summary.get("worst")
    # Runs from before summary.json named the unseen took the worst over them too.
    domains = run.domains if "unseen" in run.summary else run.measured
    for split in REQUIRED_SPLITS:
        rows = [final[split][domain] for domain in domains]
        loss = worst([row.loss for row in rows], "smaller")
        accuracy = worst([row.accuracy for row in rows], "larger")
        _same(written_worst, (split, "loss"), float(loss), "worst")
        _same(written_worst, (split, "accuracy"), float(accuracy), "worst")


def _same(mapping: object, keys: Iterable[str], expected: float, top: str) -> None:
    place = ".".join((top, *keys))
    value: Any = mapping
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable(f"summary.json has no number at {place}")
    if not math.isclose(value, expected, rel_tol=REL_TOL, abs_tol=1e-7):
        raise Unreadable(f"summary.json has {place}={value}, metrics.csv {expected}")


def gaps(history: Mapping[str, Series]) -> list[str]:
    """What to say of measurements before the last that are not whole (see `Series`): a line a
    split, however many there are."""
    found = []
    for split, series in history.items():
        first, *others = series.dropped or (None,)
        if first is not None:
            more = f" (the first of {len(others) + 1:,} such iterations)" if others else ""
            found.append(
                f"metrics.csv: {split} at iteration {first}{more} has not one sound row for each "
                "domain; left out of means and curves"
            )
    return found
