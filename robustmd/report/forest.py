"""What a forest plot of paired differences shows: what a method gains, and what it pays for it."""

from collections.abc import Iterable
from dataclasses import dataclass

from robustmd.report.paired import MEAN, Comparison
from robustmd.report.quantities import WORST_TEST_ACCURACY


@dataclass(frozen=True)
class Forest:
    """`rows`: each method's difference to the baseline in worst test accuracy, and in the price,
    None where there is none; at least one row."""

    rows: tuple[tuple[Comparison, Comparison | None], ...]

    @property
    def baseline(self) -> str:
        return self.rows[0][0].baseline

    @property
    def margin(self) -> float:
        """Points, within which a difference counts as equivalent."""
        return self.rows[0][0].margin

    @property
    def price(self) -> str:
        """What the price is: the mean over the domains, or the baseline's best domain."""
        is_mean = any(price and price.note == MEAN for _, price in self.rows)
        return MEAN if is_mean else f"{self.baseline}’s best domain"

    @property
    def scales(self) -> tuple[float, float]:
        """Points that drawings of gains and of prices reach to."""
        gains = [gain for gain, _ in self.rows]
        return _scale(gains), _scale([price for _, price in self.rows if price] or gains)


def forest(comparisons: Iterable[Comparison]) -> Forest | None:
    """None where nothing can be compared."""
    found = list(comparisons)
    prices = {one.method: one for one in found if one.is_price}
    gains = [one for one in found if one.quantity == WORST_TEST_ACCURACY]
    return Forest(tuple((one, prices.get(one.method)) for one in gains)) if gains else None


def _scale(rows: Iterable[Comparison]) -> float:
    """All intervals, but no more than four times the largest mean, so that two seeds that disagree
    do not make the rest invisible."""
    rows = list(rows)
    means = max(max(abs(one.difference.mean), one.margin) for one in rows)
    ends = [abs(end) for one in rows for end in one.difference.interval or ()]
    return 1.15 * min(max([means, *ends]), 4 * means)
