"""What is measured of a domain, from one forward pass, and one value of all the domains' values.

Each metric takes the logits, float [n, C], and the labels, int64 [n], of one domain's split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from robustmd.losses import cross_entropy
from robustmd.registry import Better, metric

if TYPE_CHECKING:
    from torch import Tensor

MEASURED = ("loss", "accuracy")  # of every run, in metrics.csv
BINS = 15  # of the expected calibration error, as in Guo et al. (2017)


@metric("loss", unit="nats", better="smaller", decimals=3)
def loss(logits: Tensor, labels: Tensor) -> Tensor:
    """f_k: mean cross entropy in nats. In metrics.csv of every run."""
    return cross_entropy(logits, labels).mean()


@metric("accuracy", unit="%", better="larger", decimals=2)
def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Acc_k: percent of the examples whose largest logit is their label's. In metrics.csv."""
    return 100 * (logits.argmax(1) == labels).double().mean()


@metric("macro_accuracy", unit="%", better="larger", decimals=2)
def macro_accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Recall in percent, the mean over the classes that occur."""
    hits, true, _ = _counts(logits, labels)
    return 100 * (hits[true > 0] / true[true > 0]).mean()


@metric("macro_f1", better="larger", decimals=3)
def macro_f1(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of F1 = 2·hits/(true + predicted), in [0, 1], over the classes that occur or are
    predicted."""
    hits, true, predicted = _counts(logits, labels)
    there = true + predicted > 0
    return (2 * hits[there] / (true + predicted)[there]).mean()


@metric("ece", better="smaller", decimals=3)
def ece(logits: Tensor, labels: Tensor) -> Tensor:
    """Expected calibration error Σ_b (n_b/n)|accuracy_b − confidence_b|, in [0, 1].

    15 bins of equal width over the confidence, the largest probability, each closed above; Guo et
    al., *On Calibration of Modern Neural Networks* (2017), eq. 3.
    """
    confidence, predicted = logits.softmax(1).double().max(1)
    bins = (confidence * BINS).ceil().long().clamp(1, BINS) - 1
    gap = (predicted == labels).double() - confidence
    sums = gap.new_zeros(BINS).index_add(0, bins, gap)
    return sums.abs().sum() / len(labels)


@metric("brier", better="smaller", decimals=3)
def brier(logits: Tensor, labels: Tensor) -> Tensor:
    """Brier score: mean over the examples of Σ_c (p_c − [c = label])², in [0, 2]; Brier (1950)."""
    p = logits.softmax(1).double()
    right = p.gather(1, labels[:, None])
    return ((p**2).sum(1) - 2 * right[:, 0] + 1).mean()


def _counts(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """By class, float64 [C]: examples predicted right, examples there, examples predicted."""
    predicted, classes = logits.argmax(1), logits.shape[1]
    hits = labels[predicted == labels]
    return tuple(found.bincount(minlength=classes).double() for found in (hits, labels, predicted))  # type: ignore[return-value]


def worst(values: npt.ArrayLike, better: Better) -> np.ndarray:
    """[..., K] -> [...]: the largest value where smaller is better, else the smallest; NaN where
    one of them is."""
    # numpy's: Python's max over a NaN depends on the order
    return np.max(values, axis=-1) if better == "smaller" else np.min(values, axis=-1)


def worst_tenth(values: npt.ArrayLike, better: Better) -> np.ndarray:
    """[..., K] -> [...]: the mean over the ⌈K/10⌉ domains with the worst values."""
    ascending = np.sort(values, axis=-1)
    count = tenth(ascending.shape[-1])
    chosen = ascending[..., -count:] if better == "smaller" else ascending[..., :count]
    return np.mean(chosen, axis=-1)


def tenth(count: int) -> int:
    """⌈K/10⌉, how many domains the worst tenth of K are."""
    return -(-count // 10)


REDUCERS: Mapping[str, Callable[[npt.ArrayLike, Better], np.ndarray]] = {
    "worst_tenth": worst_tenth,
    "worst": worst,
    "mean": lambda values, _: np.mean(np.asarray(values), axis=-1),
}


@dataclass(frozen=True)
class BestBy:
    """What a measurement is chosen by: one value of a metric's values on the validation sets."""

    reducer: str
    metric: str

    @classmethod
    def of(cls, text: str) -> BestBy:
        """ "worst_loss", "mean_accuracy", "worst_tenth_macro_f1". Raises ValueError for others."""
        for reducer in REDUCERS:
            metric = text.removeprefix(f"{reducer}_")
            if metric not in (text, ""):
                return cls(reducer, metric)
        raise ValueError(f"must be one of {', '.join(REDUCERS)}, then _METRIC, as worst_loss")

    def cost(self, values: npt.ArrayLike, better: Better) -> np.ndarray:
        """[..., K] -> [...]: less is better; infinite where a value is not known."""
        found = REDUCERS[self.reducer](values, better) * (1.0 if better == "smaller" else -1.0)
        return np.where(np.isnan(found), np.inf, found)

    def __str__(self) -> str:
        return f"{self.reducer}_{self.metric}"
