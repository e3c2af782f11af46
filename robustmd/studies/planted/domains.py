"""Planted domains: linear rules of known angle, features of known scale, labels of known noise."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustmd.studies.streams import stream

FEATURES = 10  # d
_TEST_EXAMPLES = 1_000  # in every domain
_RULES = "rules"


@dataclass(frozen=True)
class Setting:
    """How K domains are made. Domain 1 is the odd one, where one is.

        x = s_k g,  g ~ N(0, I_d),  y = sign(r_k·x), flipped with probability φ_k
        r_k = cos θ_k e + sin θ_k u_k,  u_k ⊥ e of length 1, drawn anew for every domain and seed

    Attributes:
        num_domains: K ≥ 2.
        angle: θ_k, in degrees, between every domain's rule and the common e.
        first_angle: θ_1; None: as the others.
        flips: φ_k, the share of flipped labels, 0 to ½.
        first_flips: φ_1; None: as the others.
        scale_ratio: s_K/s_1 ≥ 1, s_K = 1; geometric in between: domain 1 is the slowest to learn.
        size_ratio: n_K/n_1 ≥ 1; geometric in between, `mean_size` K examples in all.
    """

    num_domains: int = 5
    angle: float = 30.0
    first_angle: float | None = None
    flips: float = 0.05
    first_flips: float | None = None
    scale_ratio: float = 1.0
    size_ratio: float = 1.0
    mean_size: int = 500

    def angles(self) -> np.ndarray:
        """θ [K], in radians."""
        return np.deg2rad(self._with_first(self.angle, self.first_angle))

    def flip_shares(self) -> np.ndarray:
        """φ [K]."""
        return self._with_first(self.flips, self.first_flips)

    def scales(self) -> np.ndarray:
        """s [K]."""
        return np.geomspace(1 / self.scale_ratio, 1.0, self.num_domains)

    def sizes(self) -> np.ndarray:
        """n [K], int64."""
        shares = np.geomspace(1.0, self.size_ratio, self.num_domains)
        total = self.mean_size * self.num_domains
        return np.rint(total * shares / shares.sum()).astype(np.int64)

    def _with_first(self, others: float, first: float | None) -> np.ndarray:
        values = np.full(self.num_domains, others)
        values[0] = others if first is None else first
        return values


class Sample(NamedTuple):
    """Examples of K domains.

    Attributes:
        signed: y x [K, N, d], N the largest domain's size, zeros where a domain is smaller.
        shares: 1/n_k [K, N] beside every example of domain k, 0 beside what is none.
    """

    signed: np.ndarray
    shares: np.ndarray


class Splits(NamedTuple):
    """What one seed draws.

    Attributes:
        train, validation: n_k examples of every domain.
        test: 1,000 of every domain, labels flipped as in training.
        clean: the same examples without a flipped label.
    """

    train: Sample
    validation: Sample
    test: Sample
    clean: Sample


def draw(setting: Setting, seed: int) -> Splits:
    """The domains of one seed. Settings of one seed share all that they can: g, u_k and the flips'
    uniform draws; what differs between them is the factor alone."""
    rules = _rules(setting, seed)
    sizes = setting.sizes()
    many = np.full_like(sizes, _TEST_EXAMPLES)
    flips = setting.flip_shares()
    return Splits(
        _sample(setting, rules, seed, "train", sizes, flips),
        _sample(setting, rules, seed, "validation", sizes, flips),
        _sample(setting, rules, seed, "test", many, flips),
        _sample(setting, rules, seed, "test", many, np.zeros_like(flips)),
    )


def _rules(setting: Setting, seed: int) -> np.ndarray:
    """r [K, d], e the first axis."""
    u = np.stack(
        [
            stream(seed, f"{_RULES} {k}").standard_normal(FEATURES - 1)
            for k in range(setting.num_domains)
        ]
    )
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    theta = setting.angles()[:, None]
    return np.hstack([np.cos(theta), np.sin(theta) * u])


def _sample(
    setting: Setting, rules: np.ndarray, seed: int, split: str, sizes: np.ndarray, flips: np.ndarray
) -> Sample:
    K = setting.num_domains
    signed = np.zeros((K, sizes.max(), FEATURES))
    shares = np.zeros((K, sizes.max()))
    for k, n in enumerate(sizes):
        g = stream(seed, f"{split} features {k}").standard_normal((n, FEATURES))
        flipped = stream(seed, f"{split} flips {k}").random(n) < flips[k]
        y = np.where(flipped, -1.0, 1.0) * np.sign(g @ rules[k])
        signed[k, :n] = setting.scales()[k] * y[:, None] * g
        shares[k, :n] = 1 / n
    return Sample(signed, shares)
