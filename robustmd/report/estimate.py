"""Mean and spread over seeds."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

SpreadKind = Literal["std", "sem", "ci95"]
SPREADS: tuple[SpreadKind, ...] = get_args(SpreadKind)
SPREAD_WORDS: dict[SpreadKind, str] = {
    "std": "sample standard deviation over n seeds (ddof = 1)",
    "sem": "standard error of the mean over n seeds (s/sqrt n)",
    "ci95": "half width of the 95 % t interval of the mean over n seeds",
}
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """Mean of n >= 1 values and their sample standard deviation; `std` is None where n = 1."""

    mean: float
    std: float | None
    n: int

    def spread(self, kind: SpreadKind) -> float | None:
        """What stands behind ±; None where n = 1. s = 5.29, n = 3: sem 3.06, ci95 13.1."""
        if self.std is None or kind == "std":
            return self.std
        standard_error = self.std / math.sqrt(self.n)
        return standard_error if kind == "sem" else t_quantile(self.n - 1) * standard_error


def estimate(values: Iterable[float]) -> Estimate:
    """mean = Σx/n, std = sqrt(Σ(x − mean)²/(n − 1)); (80, 82, 90) gives 84.0 and 5.29.

    Raises ValueError where there is no value.
    """
    sample = list(values)
    if not sample:
        raise ValueError("values: got none; an estimate needs at least one")
    spread = statistics.stdev(sample) if len(sample) > 1 else None
    return Estimate(statistics.fmean(sample), spread, len(sample))


def t_quantile(degrees: float, confidence: float = CONFIDENCE) -> float:
    """t_{(1 + confidence)/2, degrees} of Student's distribution, degrees > 0."""
    from scipy import special  # noqa: PLC0415 - only where a report has an interval

    return float(special.stdtrit(degrees, 0.5 + confidence / 2))
