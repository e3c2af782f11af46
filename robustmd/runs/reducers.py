"""One value of the domains' values: each way is coded here and nowhere else."""

from typing import Literal

import numpy as np
import numpy.typing as npt

Better = Literal["smaller", "larger"]  # which values of a quantity are the better ones
Values = npt.ArrayLike


def worst(values: Values, better: Better) -> np.ndarray:
    """[..., K] -> [...]: the largest value where smaller is better, else the smallest; NaN where
    one of them is."""
    # numpy's: Python's max over a NaN depends on the order
    return np.max(values, axis=-1) if better == "smaller" else np.min(values, axis=-1)


def worst_tenth(values: Values, better: Better) -> np.ndarray:
    """[..., K] -> [...]: the mean over the ⌈K/10⌉ domains with the worst values."""
    ascending = np.sort(values, axis=-1)
    count = tenth(ascending.shape[-1])
    chosen = ascending[..., -count:] if better == "smaller" else ascending[..., :count]
    return np.mean(chosen, axis=-1)


def tenth(count: int) -> int:
    """⌈K/10⌉, how many domains the worst tenth of K are."""
    return -(-count // 10)
