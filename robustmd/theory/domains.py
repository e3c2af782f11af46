"""Synthetic domains: the same classes, seen from different sides and with different noise."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from robustmd.theory.streams import stream


class Domains(NamedTuple):
    """K domains of N examples each.

    Attributes:
        features: [K, N, D], float64.
        labels: [K, N], int64, 0 … C − 1.
        num_classes: C.
    """

    features: Tensor
    labels: Tensor
    num_classes: int


def synthetic_domains(
    num_domains: int = 3,
    num_examples: int = 20,
    num_features: int = 2,
    num_classes: int = 2,
    *,
    seed: int = 0,
    disagreement: float = 0.7,
    separation: float = 1.0,
    flips: float = 0.1,
) -> Domains:
    """Gaussian classes whose means differ between domains by `disagreement` (0: not at all).

        x = (1 − d) a_y + d b_{k,y} + noise,    a, b, noise standard normal

    A share `flips` of the labels is drawn anew, so that no domain can be separated and every f_k
    has a minimum. No model suits all domains: the worst case is a compromise.
    """
    rng = stream(seed, "domains")
    shared = rng.standard_normal((num_classes, num_features))
    own = rng.standard_normal((num_domains, num_classes, num_features))
    means = separation * ((1 - disagreement) * shared + disagreement * own)
    labels = np.tile(np.arange(num_examples) % num_classes, (num_domains, 1))
    noise = rng.standard_normal((num_domains, num_examples, num_features))
    features = means[np.arange(num_domains)[:, None], labels] + noise
    flipped = rng.random(labels.shape) < flips
    labels = np.where(flipped, rng.integers(num_classes, size=labels.shape), labels)
    return Domains(torch.from_numpy(features), torch.from_numpy(labels), num_classes)
