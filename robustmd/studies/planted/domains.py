"""Planted domains: linear rules of known angle, features of known scale, labels of known noise;
their convex losses, and what the best model could have, from a solver with a certificate.

F* = min_w max_k f_k(w)             what opt and its kin are after
G* = min_w max_k (f_k(w) − f*_k)    what regret is after;  f*_k = min_w f_k(w)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import logsigmoid

from robustmd.studies.saddle import SaddlePoint, minimise_mixture, solve
from robustmd.training.data import stream

FEATURES = 10  # d
RIDGE = 0.01  # ρ: every f_k is ρ-strongly convex, so that every optimum is one point
_TEST_EXAMPLES = 1_000  # in every domain


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

    def flip_shares(self) -> np.ndarray:
        """φ [K]."""
        return self._with_first(self.flips, self.first_flips)

    def sizes(self) -> np.ndarray:
        """n [K], int64."""
        shares = np.geomspace(1.0, self.size_ratio, self.num_domains)
        total = self.mean_size * self.num_domains
        return np.rint(total * shares / shares.sum()).astype(np.int64)

    def rules(self, seed: int) -> np.ndarray:
        """r [K, d], e the first axis."""
        streams = (stream(seed, f"rules {k}") for k in range(self.num_domains))
        u = np.stack([one.standard_normal(FEATURES - 1) for one in streams])
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        theta = np.deg2rad(self._with_first(self.angle, self.first_angle))[:, None]
        return np.hstack([np.cos(theta), np.sin(theta) * u])

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
    rules, sizes, flips = setting.rules(seed), setting.sizes(), setting.flip_shares()
    scales = np.geomspace(1 / setting.scale_ratio, 1.0, setting.num_domains)

    def sample(split: str, sizes: np.ndarray, flips: np.ndarray) -> Sample:
        signed = np.zeros((setting.num_domains, sizes.max(), FEATURES))
        shares = np.zeros((setting.num_domains, sizes.max()))
        for k, n in enumerate(sizes):
            g = stream(seed, f"{split} features {k}").standard_normal((n, FEATURES))
            flipped = stream(seed, f"{split} flips {k}").random(n) < flips[k]
            y = np.where(flipped, -1.0, 1.0) * np.sign(g @ rules[k])
            signed[k, :n] = scales[k] * y[:, None] * g
            shares[k, :n] = 1 / n
        return Sample(signed, shares)

    many = np.full_like(sizes, _TEST_EXAMPLES)
    return Splits(
        sample("train", sizes, flips),
        sample("validation", sizes, flips),
        sample("test", many, flips),
        sample("test", many, np.zeros_like(flips)),
    )


BASE = Setting()


@dataclass(frozen=True)
class Factor:
    """One thing that is varied, all else as in `BASE`.

    Attributes:
        name: for the tables.
        label: what the levels are, for the figures' axis.
        levels: (value, setting), from the mildest to the hardest.
        log: whether the axis is logarithmic.
    """

    name: str
    label: str
    levels: tuple[tuple[float, Setting], ...]
    log: bool = False

    def ends(self) -> "Factor":
        """The same with its mildest and its hardest level only."""
        return replace(self, levels=(self.levels[0], self.levels[-1]))


NOISE = Factor(
    "label noise",
    "flipped labels in one domain (0.05 in the others)",
    ((0.05, BASE), *((share, Setting(first_flips=share)) for share in (0.15, 0.25, 0.35, 0.45))),
)
FACTORS = (
    Factor(
        "difficulty",
        "scale of the features, easiest / hardest domain",
        tuple((ratio, Setting(scale_ratio=ratio)) for ratio in (1.0, 2.0, 4.0, 8.0)),
        log=True,
    ),
    Factor(
        "size",
        "training examples, largest / smallest domain",
        tuple((ratio, Setting(size_ratio=ratio)) for ratio in (1.0, 3.0, 10.0, 30.0)),
        log=True,
    ),
    NOISE,
    Factor(
        "domains",
        "domains K",
        tuple((float(K), Setting(num_domains=K)) for K in (2, 5, 10, 20, 50)),
        log=True,
    ),
    Factor(
        "outlier",
        "angle of one domain's rule (30° in the others)",
        (
            (30.0, BASE),
            *((angle, Setting(first_angle=angle)) for angle in (60.0, 90.0, 120.0, 150.0)),
        ),
    ),
)


def settings_of(factors: Sequence[Factor]) -> list[Setting]:
    """Every setting once: the factors share their base."""
    return list(dict.fromkeys(setting for factor in factors for _, setting in factor.levels))


@dataclass(frozen=True)
class Optimum:
    """The optima of one sample.

    Attributes:
        alone: f* [K], every domain's own best loss.
        worst_case: the saddle point of F*; its `upper` is max_k f_k(w*), `lower` bounds F* below.
        worst_excess: the same of G*.
    """

    alone: np.ndarray
    worst_case: SaddlePoint
    worst_excess: SaddlePoint

    @property
    def error(self) -> float:
        """A bound on the error of F* and of G*: the larger duality gap."""
        saddles = (self.worst_case, self.worst_excess)
        return max(saddle.upper - saddle.lower for saddle in saddles)


def solve_optimum(sample: Sample) -> Optimum:
    """F*, G* and f* of one sample's training losses."""
    K, _, d = sample.signed.shape
    domains = [Sample(sample.signed[k : k + 1], sample.shares[k : k + 1]) for k in range(K)]
    alone = np.array(
        [minimise_mixture(partial(losses_and_jacobian, one), np.ones(1), d)[0] for one in domains]
    )

    def excess(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, J = losses_and_jacobian(sample, w)
        return f - alone, J

    return Optimum(alone, solve(partial(losses_and_jacobian, sample), d), solve(excess, d))


def cross_entropies(sample: Sample, W: np.ndarray) -> np.ndarray:
    """Mean cross entropy log(1 + exp(−y w·x)) of every domain, in nats: [n, K] for W [n, d]."""
    K, N, d = sample.signed.shape
    margins = torch.from_numpy(W @ sample.signed.reshape(K * N, d).T)  # [n, K·N]
    losses = logsigmoid(margins).view(-1, K, N)
    return np.einsum("kn,wkn->wk", sample.shares, -losses.numpy())


def training_losses(sample: Sample, W: np.ndarray) -> np.ndarray:
    """f(W) = cross entropy + (ρ/2)‖w‖²: [n, K] for W [n, d]."""
    ridge = RIDGE / 2 * np.square(W).sum(axis=1, keepdims=True)
    return cross_entropies(sample, W) + ridge


def losses_and_jacobian(sample: Sample, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f(w) [K] and J [K, d], its rows ∇f_k, for w [d]."""
    margins = sample.signed @ w  # [K, N]
    f = (sample.shares * np.logaddexp(0.0, -margins)).sum(axis=1) + RIDGE / 2 * (w @ w)
    pull = sample.shares / (1 + np.exp(np.minimum(margins, 700.0)))  # σ(−margin)/n_k
    return f, RIDGE * w - (pull[:, None, :] @ sample.signed)[:, 0]
