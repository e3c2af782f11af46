#!/usr/bin/env python3
"""When does an adversary help? Every method on convex domains whose best worst case is known.

    python scripts/planted.py --out report            # 13½ min on 2 busy cores
    python scripts/planted.py --out report --quick    # seconds: 15 iterations, to see that it works

writes DIR/planted/: suboptimality, excess and noise (PNG, PDF), planted.md and planted.csv (the
tables) and runs.csv (every run). docs/planted.md says what the numbers are and what they show.
Exit code 1 means that a run was below the optimum, which no model can be: a bug.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from _study import (
    Findings,
    Lanes,
    SaddlePoint,
    markdown_table,
    minimise_mixture,
    run_study,
    side_by_side,
    solve_saddle,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from scipy import stats
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from robustmd.adversary import Adversary
from robustmd.methods import build_adversary
from robustmd.registry import METHODS, MethodFacts
from robustmd.report.figures import figure_style
from robustmd.training.data import stream

# --- the domains ----------------------------------------------------------------------------------

FEATURES = 10  # d
RIDGE = 0.01  # ρ: every f_k is ρ-strongly convex, so that every optimum is one point
TEST_EXAMPLES = 1_000  # in every domain


@dataclass(frozen=True)
class Setting:
    """How K domains are made. Domain 1 is the odd one, if there is one.

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
        u = np.stack([random.standard_normal(FEATURES - 1) for random in streams])
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        theta = np.deg2rad(self._with_first(self.angle, self.first_angle))[:, None]
        return np.hstack([np.cos(theta), np.sin(theta) * u])

    def _with_first(self, others: float, first: float | None) -> np.ndarray:
        values = np.full(self.num_domains, others)
        values[0] = others if first is None else first
        return values


class Sample(NamedTuple):
    """Examples of K domains.

    signed: y x [K, N, d], N the largest domain's size, zeros where a domain is smaller.
    shares: 1/n_k [K, N] beside every example of domain k, 0 beside the padding.
    """

    signed: np.ndarray
    shares: np.ndarray


class Splits(NamedTuple):
    """What one seed draws: n_k examples of every domain to train and to validate on, 1,000 to test
    on; `clean` holds the test examples without a flipped label."""

    train: Sample
    validation: Sample
    test: Sample
    clean: Sample


def draw_splits(setting: Setting, seed: int) -> Splits:
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

    many = np.full_like(sizes, TEST_EXAMPLES)
    return Splits(
        sample("train", sizes, flips),
        sample("validation", sizes, flips),
        sample("test", many, flips),
        sample("test", many, np.zeros_like(flips)),
    )


class Factor(NamedTuple):
    """One thing that is varied, all else as in the base: level -> setting, mildest to hardest."""

    name: str
    axis: str
    levels: Mapping[float, Setting]
    is_log: bool = False


BASE = Setting()
NOISE = Factor(
    "label noise",
    "flipped labels in one domain (0.05 in the others)",
    {0.05: BASE, **{share: Setting(first_flips=share) for share in (0.15, 0.25, 0.35, 0.45)}},
)
FACTORS = (
    Factor(
        "difficulty",
        "scale of the features, easiest / hardest domain",
        {ratio: Setting(scale_ratio=ratio) for ratio in (1.0, 2.0, 4.0, 8.0)},
        is_log=True,
    ),
    Factor(
        "size",
        "training examples, largest / smallest domain",
        {ratio: Setting(size_ratio=ratio) for ratio in (1.0, 3.0, 10.0, 30.0)},
        is_log=True,
    ),
    NOISE,
    Factor(
        "domains",
        "domains K",
        {float(K): Setting(num_domains=K) for K in (2, 5, 10, 20, 50)},
        is_log=True,
    ),
    Factor(
        "outlier",
        "angle of one domain's rule (30° in the others)",
        {30.0: BASE, **{angle: Setting(first_angle=angle) for angle in (60.0, 90.0, 120.0, 150.0)}},
    ),
)

# --- their losses and optima ----------------------------------------------------------------------


def cross_entropies(sample: Sample, W: np.ndarray) -> np.ndarray:
    """Mean cross entropy log(1 + exp(−y w·x)) of every domain, in nats: [n, K] for W [n, d]."""
    K, N, d = sample.signed.shape
    margins = torch.from_numpy(W @ sample.signed.reshape(K * N, d).T)  # [n, K·N]
    losses = logsigmoid(margins).view(-1, K, N)
    return np.einsum("kn,wkn->wk", sample.shares, -losses.numpy())


def training_losses(sample: Sample, W: np.ndarray) -> np.ndarray:
    """f(W) = cross entropy + (ρ/2)‖w‖²: [n, K] for W [n, d]."""
    return cross_entropies(sample, W) + RIDGE / 2 * np.square(W).sum(axis=1, keepdims=True)


def losses_and_jacobian(sample: Sample, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f(w) [K] and J [K, d], its rows ∇f_k, for w [d]."""
    margins = sample.signed @ w  # [K, N]
    f = (sample.shares * np.logaddexp(0.0, -margins)).sum(axis=1) + RIDGE / 2 * (w @ w)
    pull = sample.shares / (1 + np.exp(np.minimum(margins, 700.0)))  # σ(−margin)/n_k
    return f, RIDGE * w - (pull[:, None, :] @ sample.signed)[:, 0]


class Optimum(NamedTuple):
    """f*_k = min_w f_k(w) [K]; F* = min_w max_k f_k(w), what opt and its kin are after; G* =
    min_w max_k (f_k(w) − f*_k), what regret is after. error: the larger duality gap of the two."""

    alone: np.ndarray
    worst_case: SaddlePoint
    worst_excess: SaddlePoint
    error: float


def solve_optimum(sample: Sample) -> Optimum:
    K, _, d = sample.signed.shape
    domains = [Sample(sample.signed[k : k + 1], sample.shares[k : k + 1]) for k in range(K)]
    alone = np.array(
        [minimise_mixture(partial(losses_and_jacobian, one), np.ones(1), d)[0] for one in domains]
    )

    def excess(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, J = losses_and_jacobian(sample, w)
        return f - alone, J

    saddles = solve_saddle(partial(losses_and_jacobian, sample), d), solve_saddle(excess, d)
    return Optimum(alone, *saddles, max(saddle.upper - saddle.lower for saddle in saddles))


# --- the methods ----------------------------------------------------------------------------------

LAM, ETA = {"lam": (0.01, 0.03, 0.1, 0.3)}, {"eta": (0.01, 0.03, 0.1, 0.3)}
FAMILIES: dict[str, dict[str, dict[str, tuple[Any, ...]]]] = {  # a method's keys and their values
    "fixed weights": {"even": {}, "erm": {}},
    "no memory: answers the batch": {
        "term": {"t": (1.0, 4.0, 16.0, 64.0)},
        "cvar": {"alpha": (0.2, 0.4, 0.6, 0.8)},
        "topk": {"share": (0.0, 0.25, 0.5, 0.75)},
        "vrex": {"beta": (1.0, 3.0, 10.0, 30.0)},
    },
    "ascent, no regularizer": {
        "minimax": ETA,
        "groupdro": {"eta": (0.03, 0.3), "adjustment": (0.0, 1.0)},
        "afl": ETA,
    },
    "ascent with a regularizer": dict.fromkeys(("opt", "ot", "kl", "regret", "optimistic"), LAM),
}
FURTHER_KEYS = {"minimax": {"step": "constant"}}
NO_DISTRIBUTION = ("vrex",)  # its weights have no bound
REFERENCE = "even"


class Method(NamedTuple):
    """A method's configurations, 8 of them: each of its own values with each learning rate."""

    name: str
    own: tuple[Mapping[str, Any], ...]
    rates: tuple[float, ...]

    def configurations(self) -> list[str]:
        """Each in words, its own value first, then the rate, which changes fastest."""
        return [
            ", ".join([*(f"{key}={value:g}" for key, value in own.items()), f"lr={rate:g}"])
            for own in self.own
            for rate in self.rates
        ]

    def adversary(
        self, own: Mapping[str, Any], iterations: int, sizes: Sequence[int], alone: Sequence[float]
    ) -> Adversary:
        """The package's, with these of its `own` values; n_k are `sizes`, f* is `alone`."""
        keys = {**own, **FURTHER_KEYS.get(self.name, {})}
        if "share" in keys:
            keys["k"] = max(1, math.ceil(keys.pop("share") * len(sizes)))
        settings, _ = METHODS[self.name](**keys).filled(_OptimaAlone(alone))
        return build_adversary(settings, MethodFacts(len(sizes), iterations, sizes))


class _OptimaAlone(NamedTuple):
    """f* [K], for the method that takes it from finished runs."""

    losses: Sequence[float]

    def best_losses(self) -> tuple[list[float], str]:
        return list(self.losses), ""

    def mean_weights(self, path: str | None) -> tuple[list[float], str]:
        raise NotImplementedError


def compared_methods() -> list[Method]:
    methods = []
    for grids in FAMILIES.values():
        for name, grid in grids.items():
            own = tuple(dict(zip(grid, values, strict=True)) for values in product(*grid.values()))
            rates = (0.3, 1.0) if grid else (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)
            methods.append(Method(name, own, rates))
    return methods


# --- descent: every configuration on the same batches ---------------------------------------------

BATCH = 200  # examples an iteration, ⌊200/K⌋ of every domain, with replacement
BLOCK = 256  # iterations whose batches are drawn at once


class Task(NamedTuple):
    """One seed's training set of one setting."""

    setting: Setting
    seed: int
    train: Sample
    optimum: Optimum


class Trained(NamedTuple):
    """What one method's configurations became, C of them on B tasks.

    last: w_T [B, C, d], after the last step. mean: w̄ = (1/T) Σ_t w_t [B, C, d].
    mean_weights: p̄ = (1/T) Σ_t p_t [B, C, K].
    """

    last: np.ndarray
    mean: np.ndarray
    mean_weights: np.ndarray


@torch.no_grad()
def train(tasks: Sequence[Task], methods: Sequence[Method], iterations: int) -> list[Trained]:
    """Train every configuration of every method on every task, all of one K, from w = 0:

    w_{t+1} = w_t − η_t Σ_k p_t^k ∇f̂_k(w_t),    η_t = η ½(1 + cos(π t/T)), t = 0 … T − 1
    """
    teams = [_Team(method, tasks, iterations) for method in methods]
    batches = draw_batches(tasks)
    for t in range(iterations):
        signed = next(batches)
        decay = (1 + math.cos(math.pi * t / iterations)) / 2
        for team in teams:
            team.step(signed, decay)
    sums = [(team.w, team.w_sum / iterations, team.p_sum / iterations) for team in teams]
    return [Trained(*(values.numpy() for values in one)) for one in sums]


class _Player(nn.Module):
    """An adversary as one of many lanes; it answers its losses [K]."""

    def __init__(self, adversary: Adversary) -> None:
        super().__init__()
        self.adversary = adversary

    def forward(self, losses: Tensor) -> None:
        self.adversary.update(losses)


class _Team:
    """All configurations of one method, own values × rates, on all tasks."""

    def __init__(self, method: Method, tasks: Sequence[Task], iterations: int) -> None:
        K, d = tasks[0].setting.num_domains, tasks[0].train.signed.shape[2]
        players = [
            [
                _Player(
                    method.adversary(
                        own, iterations, task.setting.sizes().tolist(), task.optimum.alone.tolist()
                    )
                )
                for task in tasks
                for _ in method.rates
            ]
            for own in method.own
        ]
        self.num_rates = len(method.rates)
        self.weighs = players[0][0].adversary.weighs
        self.lanes = [Lanes(some) for some in players]
        rates = method.rates * len(method.own)
        self.rates = torch.tensor(rates, dtype=torch.float64)[:, None]
        self.w = torch.zeros(len(tasks), len(rates), d, dtype=torch.float64)
        self.w_sum = torch.zeros_like(self.w)
        self.p_sum = torch.zeros(len(tasks), len(rates), K, dtype=torch.float64)

    def step(self, signed: Tensor, decay: float) -> None:
        """One iteration on the batches y x [B, K, m, d]."""
        B, K, m, d = signed.shape
        flat = signed.view(B, K * m, d)
        margins = flat @ self.w.transpose(1, 2)  # [B, K·m, C]
        f = logsigmoid(margins).view(B, K, m, -1).mean(dim=2).neg_().transpose(1, 2)
        f = f + RIDGE / 2 * self.w.square().sum(dim=2, keepdim=True)  # [B, C, K]
        before = self._weights(B)
        for lanes, losses in zip(self.lanes, f.split(self.num_rates, dim=1), strict=True):
            lanes(losses.flatten(0, 1))
        p = self._weights(B) if self.weighs == "current" else before
        pull = torch.sigmoid(-margins).view(B, K, m, -1) * p.transpose(1, 2).unsqueeze(2) / m
        gradient = RIDGE * self.w - pull.view(B, K * m, -1).transpose(1, 2) @ flat
        self.w_sum += self.w
        self.p_sum += p
        self.w = self.w - decay * self.rates * gradient

    def _weights(self, num_tasks: int) -> Tensor:
        """p_t [B, C, K], a copy."""
        weights = [
            lanes.state["adversary.p"].view(num_tasks, self.num_rates, -1) for lanes in self.lanes
        ]
        return torch.cat(weights, dim=1)


def draw_batches(tasks: Sequence[Task]) -> Iterator[Tensor]:
    """Every iteration's y x [B, K, m, d]. Tasks of one seed draw the same places of a domain."""
    K = tasks[0].setting.num_domains
    m = max(1, BATCH // K)
    sizes = torch.from_numpy(np.stack([task.setting.sizes() for task in tasks]))
    N = int(sizes.max())
    padded = [
        np.pad(task.train.signed, ((0, 0), (0, N - task.train.signed.shape[1]), (0, 0)))
        for task in tasks
    ]
    rows = torch.from_numpy(np.concatenate(padded)).flatten(0, 1)
    first = (torch.arange(len(tasks) * K) * N).view(len(tasks), K, 1)
    seeds = sorted({task.seed for task in tasks})
    whose = torch.tensor([seeds.index(task.seed) for task in tasks])
    for block in count():
        streams = [stream(seed, "batches", block=block) for seed in seeds]
        drawn = np.stack([random.random((BLOCK, K, m)) for random in streams], axis=1)
        for places in torch.from_numpy(drawn):
            index = first + (places[whose] * sizes.unsqueeze(2)).long()
            yield rows[index.flatten()].view(*index.shape, -1)


# --- the runs -------------------------------------------------------------------------------------

ITERATIONS, QUICK_ITERATIONS = 1_000, 15
LANES = 75  # tasks in a job: more would not fit the processor's cache, fewer wait for Python
ROUNDING = 1e-12  # of sums of hundreds of numbers in float64


def run_cells(
    settings: Sequence[Setting], seeds: Sequence[int], methods: Sequence[Method], iterations: int
) -> pd.DataFrame:
    """Every setting with every seed, all of one number of domains: a line for every configuration
    of every method; losses in nats.

    | column              | what                                                                  |
    |---------------------|-----------------------------------------------------------------------|
    | setting             | the `Setting`; its fields are columns of their own too                |
    | optimum             | F*; optimum_error bounds the error of F* and G*, by the certificate   |
    | optimum_test        | `test` of the optimum's model w*; likewise optimum_clean              |
    | optimum_weight      | p*_1                                                                  |
    | method              | its name; configuration: its own value and learning rate in words     |
    | chosen              | whether `validation` is the smallest of the method's configurations   |
    | validation          | max_k cross entropy on the validation draw; inf: the run diverged     |
    | suboptimality       | max_k f_k(w) − F* on the training set                                 |
    | excess              | max_k (f_k(w) − f*_k) − G* on the training set                        |
    | test, clean         | max_k cross entropy on the test set, with and without flipped labels  |
    | weight              | p̄_1, the mean weight of domain 1                                      |
    | last                | `suboptimality` of w_T; the others are of w̄ where that is returned    |
    """
    drawn = [(setting, seed, draw_splits(setting, seed)) for setting in settings for seed in seeds]
    tasks = [
        Task(setting, seed, splits.train, solve_optimum(splits.train))
        for setting, seed, splits in drawn
    ]
    trained = train(tasks, methods, iterations)
    tables = []
    for i, (task, (_, _, splits)) in enumerate(zip(tasks, drawn, strict=True)):
        best = task.optimum.worst_case
        of_task = {
            "setting": task.setting,
            **asdict(task.setting),
            "seed": task.seed,
            "optimum": best.upper,
            "optimum_error": task.optimum.error,
            "optimum_test": worst(cross_entropies(splits.test, best.model[None]))[0],
            "optimum_clean": worst(cross_entropies(splits.clean, best.model[None]))[0],
            "optimum_weight": best.weights[0],
        }
        for method, models in zip(methods, trained, strict=True):
            averages = METHODS.flag(method.name, "averages")
            returned = models.mean[i] if averages else models.last[i]
            f = training_losses(splits.train, returned)  # [C, K]; NaN or inf where it diverged
            f_last = training_losses(splits.train, models.last[i])
            validation = worst(cross_entropies(splits.validation, returned))
            measured = {
                "method": method.name,
                "configuration": method.configurations(),
                "chosen": np.arange(len(f)) == validation.argmin(),
                "validation": validation,
                "suboptimality": worst(f) - best.upper,
                "excess": worst(f - task.optimum.alone) - task.optimum.worst_excess.upper,
                "test": worst(cross_entropies(splits.test, returned)),
                "clean": worst(cross_entropies(splits.clean, returned)),
                "weight": models.mean_weights[i, :, 0],
                "last": worst(f_last) - best.upper,
            }
            tables.append(pd.DataFrame(of_task | measured))
    return pd.concat(tables, ignore_index=True)


def worst(losses: np.ndarray) -> np.ndarray:
    """[n, K] -> [n]: the worst of the K, inf where a model diverged."""
    largest = losses.max(axis=1)
    return np.where(np.isfinite(largest), largest, math.inf)


def find(seeds: Sequence[int], quick: bool, processes: int) -> Findings:
    """Run everything. Violated: a run below the optimum, which no model can be."""
    factors = [_ends(factor) for factor in FACTORS] if quick else FACTORS
    iterations = QUICK_ITERATIONS if quick else ITERATIONS
    settings = list(dict.fromkeys(one for factor in factors for one in factor.levels.values()))
    methods = compared_methods()
    tables = []
    for table in side_by_side(run_cells, _jobs(settings, seeds, methods, iterations), processes):
        tables.append(table)
        done = sum(len(one.drop_duplicates(["setting", "seed"])) for one in tables)
        print(f"{done} of {len(settings) * len(seeds)} draws done", flush=True)
    runs = pd.concat(tables, ignore_index=True)
    runs = runs.iloc[np.lexsort((runs["seed"], runs["setting"].map(settings.index)))]
    runs = runs.reset_index(drop=True)
    diverged = int(np.isinf(runs["validation"]).sum())
    words = [f"{len(runs):,} runs; optima exact within {runs['optimum_error'].max():.0e}"]
    words += [f"{diverged} runs diverged and could not be chosen"] if diverged else []
    results = Results(runs, factors, methods, iterations)
    left_out = ["setting", "optimum_test", "optimum_clean", "optimum_weight"]
    files = {
        "planted.md": to_markdown(results),
        "planted.csv": to_csv(results),
        "runs.csv": runs.drop(columns=left_out).to_csv(index=False),
        "suboptimality": draw_families(results, "suboptimality"),
        "excess": draw_families(results, "excess"),
        "noise": draw_noise(results),
    }
    return Findings(files, words, violations(runs))


def _ends(factor: Factor) -> Factor:
    """The mildest and the hardest level only."""
    mildest, *_, hardest = factor.levels.items()
    return factor._replace(levels=dict((mildest, hardest)))


def _jobs(settings: Sequence[Setting], seeds: Sequence[int], *rest: object) -> list[Any]:
    """Arguments of `run_cells` for tasks that train together: one number of domains, some seeds;
    the largest jobs first."""
    counts = dict.fromkeys(setting.num_domains for setting in settings)
    groups = [[one for one in settings if one.num_domains == K] for K in counts]
    jobs = []
    for alike in sorted(groups, key=len, reverse=True):
        size = max(1, LANES // len(alike))
        for first in range(0, len(seeds), size):
            jobs.append((alike, seeds[first : first + size], *rest))
    return jobs


def violations(runs: pd.DataFrame) -> list[str]:
    """A line for every run below the optimum."""
    return [
        f"{run['setting']}, seed {run['seed']}, {run['method']} ({run['configuration']}): "
        f"{measure} {run[measure]:.3g} is below the optimum (error at most "
        f"{run['optimum_error']:.1g})"
        for measure in ("suboptimality", "excess", "last")
        for _, run in runs[runs[measure] < -runs["optimum_error"] - ROUNDING].iterrows()
    ]


# --- tables and figures ---------------------------------------------------------------------------

MEASURES = ("suboptimality", "excess", "test", "clean", "weight", "last")
AXES = {
    "suboptimality": "worst-case loss − optimum (nats)",
    "excess": "worst excess − optimum (nats)",
    "weight": "mean weight of the noisy domain",
    "clean": "worst-case test loss,\nlabels not flipped (nats)",
}


class Results:
    """All runs of a study, see `run_cells`, and what tables and figures ask of them."""

    def __init__(
        self,
        runs: pd.DataFrame,
        factors: Sequence[Factor],
        methods: Sequence[Method],
        iterations: int,
    ) -> None:
        self.runs, self.factors, self.methods = runs, factors, methods
        self.iterations = iterations
        self.cells = dict(iter(runs.groupby(["setting", "method"], sort=False)))

    def values(self, setting: Setting, method: str, column: str) -> pd.Series:
        """Of the chosen configurations: one for every seed."""
        runs = self.cells[setting, method]
        return runs.loc[runs["chosen"], column].reset_index(drop=True)

    def seeds_below(self, setting: Setting, method: str, measure: str) -> int:
        """On how many seeds the method is below even, by more than the optimum's error."""
        reference = self.values(setting, REFERENCE, measure)
        return int((self.values(setting, method, measure) < reference - 1e-9).sum())


def half_width(values: pd.Series) -> float:
    """Of the 95 % t interval of the mean."""
    return float(stats.t.ppf(0.975, len(values) - 1) * values.std() / math.sqrt(len(values)))


def to_csv(results: Results) -> str:
    """One line for each factor, level, method and measure: mean, deviation, interval, seeds."""
    lines = []
    for factor in results.factors:
        for level, setting in factor.levels.items():
            for method, measure in product([one.name for one in results.methods], MEASURES):
                values = results.values(setting, method, measure)
                mean, half = values.mean(), half_width(values)
                below = results.seeds_below(setting, method, measure)
                numbers = [mean, values.std(), mean - half, mean + half, len(values), below]
                lines.append([factor.name, level, method, measure, *numbers])
    head = "factor level method measure mean std ci95_low ci95_high seeds seeds_below_even"
    return pd.DataFrame(lines, columns=head.split()).to_csv(index=False)


def to_markdown(results: Results) -> str:
    """Worst case and worst excess at every factor's end, the noisy domain, and the budget."""
    runs, methods = results.runs, results.methods
    noise = next(factor for factor in results.factors if factor.name == NOISE.name)
    level, noisy = list(noise.levels.items())[-1]
    hardest = {"base": BASE}
    for factor in results.factors:
        value, setting = list(factor.levels.items())[-1]
        hardest[f"{factor.name} {value:g}"] = setting

    def text(values: pd.Series, decimals: int) -> str:
        mean = f"{values.mean():.{decimals}f}".replace("-", "−")
        return f"{mean} ± {values.std():.{decimals}f}"

    def measured(setting: Setting, method: str, measure: str) -> str:
        below = results.seeds_below(setting, method, measure)
        return f"{text(results.values(setting, method, measure), 4)} ({below})"

    def with_hindsight(setting: Setting, method: str, measure: str) -> str:
        return text(results.cells[setting, method].groupby("seed")[measure].min(), 4)

    def table_of_ends(cell: Any, measure: str) -> str:
        rows = [
            [one.name, *(cell(setting, one.name, measure) for setting in hardest.values())]
            for one in methods
        ]
        return markdown_table(["method", *hardest], rows, ["method"])

    columns = ("weight", "suboptimality", "excess", "test", "clean")
    noise_rows = [
        [one.name, *(text(results.values(noisy, one.name, column), 3) for column in columns)]
        for one in methods
    ]
    for row in noise_rows:
        if row[0] in NO_DISTRIBUTION:
            row[1] = "–"
    weight, test, clean = (
        text(results.values(noisy, REFERENCE, f"optimum_{name}"), 3)
        for name in ("weight", "test", "clean")
    )
    noise_rows.append(["optimum F*", weight, "0", "", test, clean])
    head = ["method", "mean weight of the noisy domain", "worst-case loss − F*"]
    head += ["worst excess − G*", "worst-case test loss", "without flipped labels"]

    chosen = runs[runs["chosen"]]
    budget_rows = []
    for one in methods:
        counts = chosen.loc[chosen["method"] == one.name, "configuration"].value_counts()
        often = "; ".join(f"{words}: {counts.get(words, 0)}" for words in one.configurations())
        budget_rows.append([one.name, str(len(one.configurations())), often])
    budget_head = ["method", "configurations"]
    budget_head.append(f"chosen how often, of {len(chosen) // len(methods)}")
    parts = [
        "# Planted domains: how far from the worst case's optimum",
        "Nats, on all training examples; mean ± sample standard deviation over n = "
        f"{runs['seed'].nunique()} seeds; in brackets on how many of them it is below even. "
        f"{results.iterations:,} iterations. Each method has "
        f"{len(methods[0].configurations())} configurations; the one with the smallest worst-case "
        "loss on the seed's validation draw is shown, also where the excess is. F* and G* are "
        f"exact within {runs['optimum_error'].max():.0e}.",
        "## Worst-case loss above its optimum, max_k f_k(w) − F*",
        table_of_ends(measured, "suboptimality"),
        "The same, had each seed's configuration been chosen by this very number:",
        table_of_ends(with_hindsight, "suboptimality"),
        "## Worst excess above its optimum, max_k (f_k(w) − f*_k) − G*",
        table_of_ends(measured, "excess"),
        f"## A domain with {level:.0%} of its labels flipped",
        markdown_table(head, noise_rows, ["method"]),
        "## The budget, and what was chosen",
        markdown_table(budget_head, budget_rows, ["method"]),
    ]
    return "\n\n".join(parts) + "\n"


def draw_families(results: Results, measure: str) -> Figure:
    """One row of panels for every family, one column for every factor; even in every row to compare
    with. Mean over seeds of the chosen configurations, band: its 95 % t interval."""
    with figure_style():
        figure = Figure(figsize=(2.5 * len(results.factors) + 1.6, 8.6), layout="constrained")
        shape = len(FAMILIES), len(results.factors)
        axes = figure.subplots(*shape, sharey=True, sharex="col", squeeze=False)
        for row, (family, grids) in zip(axes, FAMILIES.items(), strict=True):
            for axis, factor in zip(row, results.factors, strict=True):
                _draw_panel(
                    axis, results, factor, list(dict.fromkeys([REFERENCE, *grids])), measure
                )
            row[0].set_ylabel(f"{family}\n{AXES[measure]}", fontsize=7.5)
            row[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        for column, factor in zip(axes.T, results.factors, strict=True):
            column[0].set_title(factor.name)
            column[-1].set_xlabel(factor.axis, fontsize=7)
        axes[0, 0].set_yscale("log")
    return figure


def draw_noise(results: Results) -> Figure:
    """Weight, worst case, worst excess and clean test loss against one domain's label noise, for
    even and the ascents."""
    factor = next(factor for factor in results.factors if factor.name == NOISE.name)
    *_, plain, regularised = FAMILIES.values()
    with figure_style():
        figure = Figure(figsize=(11.6, 3.4), layout="constrained")
        figure.suptitle(f"against: {factor.axis}", fontsize=9)
        axes = figure.subplots(1, 4)
        for axis, measure in zip(axes, ("weight", "suboptimality", "excess", "clean"), strict=True):
            _draw_panel(axis, results, factor, [REFERENCE, *plain, *regularised], measure)
            axis.set_ylabel(AXES[measure])
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=9)
    return figure


def _draw_panel(
    axis: Axes, results: Results, factor: Factor, methods: Sequence[str], measure: str
) -> None:
    names = [method.name for method in results.methods]
    for method in methods:
        columns = [results.values(one, method, measure) for one in factor.levels.values()]
        mean = np.array([values.mean() for values in columns])
        half = np.array([half_width(values) for values in columns])
        place = names.index(method)
        colour = "black" if method == REFERENCE else f"C{(place - 1) % 10}"
        style: dict[str, Any] = {"color": colour, "marker": "os^Dv"[place % 5]}
        style["linestyle"] = "--" if method == REFERENCE else "-" if place <= 10 else "-."
        low = np.maximum(mean - half, mean / 10)  # a log axis has no place for what is below 0
        axis.fill_between([*factor.levels], low, mean + half, color=colour, alpha=0.15, lw=0)
        axis.plot([*factor.levels], mean, label=method, lw=1.2, markersize=3, **style)
    if factor.is_log:
        axis.set_xscale("log")
        axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticks([*factor.levels], [f"{value:g}" for value in factor.levels])


def main(arguments: Sequence[str] | None = None) -> int:
    return run_study(find, "planted", __doc__ or "", arguments, quick_seeds=2)


if __name__ == "__main__":
    sys.exit(main())
