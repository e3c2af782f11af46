"""Mean and spread over seeds."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

SPREAD = "sample standard deviation over seeds (ddof = 1)"


@dataclass(frozen=True)
class Estimate:
    """Mean of n >= 1 values and their sample standard deviation; `std` is None where n = 1."""

    mean: float
    std: float | None
    n: int


def estimate(values: Iterable[float]) -> Estimate:
    """mean = Σx/n, std = sqrt(Σ(x − mean)²/(n − 1)); (80, 82, 90) gives 84.0 and 5.29.

    Raises ValueError where there is no value.
    """
    sample = list(values)
    if not sample:
        raise ValueError("values: got none; an estimate needs at least one")
    spread = statistics.stdev(sample) if len(sample) > 1 else None
    return Estimate(statistics.fmean(sample), spread, len(sample))
