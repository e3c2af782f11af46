#!/usr/bin/env python3
"""The paper's regret bound and convergence rates, measured.

    python scripts/theory.py --out report            # 20 seeds; some 7 min on 2 cores
    python scripts/theory.py --out report --quick    # seconds; T up to 1,000: too short for rates

writes DIR/theory/: the regret bound against the constant c (PNG, PDF, CSV), the measured
convergence beside the proved rates (PNG, PDF, Markdown, CSV), and runs.csv (every run).
docs/theory.md says how to read them. Exit code 1 means that the regret of an L2 or KL run exceeded
its proved bound: a bug.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from _study import (
    Findings,
    Lanes,
    duality_gap,
    markdown_table,
    minimise_mixture,
    one_thread,
    run_study,
    side_by_side,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats
from torch import Tensor, nn
from torch.func import jacrev, vmap

from robustmd.adversary import (
    L2,
    Adversary,
    BestResponse,
    MirrorAscent,
    MultiplicativeWeights,
    Play,
    ProjectedAscent,
    RegretMeter,
    schedules,
)
from robustmd.report.figures import figure_style
from robustmd.training.data import stream

# --- the problems: K losses f(W) for many W at once, in float64 -----------------------------------


class Parabolas:
    """f(w) = ((w − 1)², (w + 1)²), a model of one number, without noise.

    The counterexample to Theorem 4 as printed: F(w) = max_k f_k(w) = (|w| + 1)² has a kink at its
    minimum, w = 0, and ‖∇F(w)‖² = 4(|w| + 1)² ≥ 4 everywhere else, so that no step size brings its
    mean below 4. With the L2 regularizer, F(w) = max_p p·f(w) − (λ/2)‖p − q‖², which is smooth, it
    goes to 0.
    """

    name = "two parabolas"
    num_domains, num_examples, batch_size = 2, 1, 1

    def start(self, seed: int) -> Tensor:
        """w₁ uniform on [−1, 1]."""
        return torch.tensor([stream(seed, "start").uniform(-1.0, 1.0)], dtype=torch.float64)

    def evaluate(self, W: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """f(W) and f̂(W), which are the same here."""
        losses = (W - W.new_tensor([1.0, -1.0])).square()
        return losses, losses


class Classifier:
    """f_k(W) = mean over domain k's examples of −log softmax(z(x; W))_y + (ridge/2)‖W‖², in nats.

    Gaussian classes, C of them, whose means differ between domains by d (0: not at all):

        x = s ((1 − d) a_y + d b_{k,y}) + noise,    a, b, noise standard normal

    A tenth of the labels is drawn anew, so that no domain can be separated and every f_k has a
    minimum. No model suits all domains: the worst case is a compromise. docs/theory.md says how the
    defaults were chosen. Mini-batches hold `batch_size` examples of each domain, i.i.d.
    """

    name: str
    num_parameters: int

    def __init__(
        self,
        num_domains: int,
        num_examples: int = 40,
        num_classes: int = 2,
        *,
        batch_size: int = 40,
        ridge: float = 0.2,
        seed: int = 6,
        disagreement: float = 1.0,
        separation: float = 1.5,
    ) -> None:
        K, N, C = num_domains, num_examples, num_classes
        self.num_domains, self.num_examples, self.num_classes = K, N, C
        self.batch_size, self.ridge = batch_size, ridge
        random = stream(seed, "domains")
        shared, own = random.standard_normal((C, 2)), random.standard_normal((K, C, 2))
        means = separation * ((1 - disagreement) * shared + disagreement * own)
        classes = np.tile(np.arange(N) % C, (K, 1))
        features = means[np.arange(K)[:, None], classes] + random.standard_normal((K, N, 2))
        redrawn = random.random(classes.shape) < 0.1
        labels = np.where(redrawn, random.integers(C, size=classes.shape), classes)
        x = torch.from_numpy(features).flatten(0, 1)  # [E, 2], E = K·N examples in all
        self.inputs = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)  # [E, 3]
        self.label_rows = torch.from_numpy(labels).view(1, 1, -1)

    def start(self, seed: int) -> Tensor:
        """W₁ [P] of a run with that seed."""
        raise NotImplementedError

    def logits(self, W: Tensor) -> Tensor:
        """z [n, C, E] for W [n, P]."""
        raise NotImplementedError

    def evaluate(self, W: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """f(W) [n, K] on all examples and f̂(W) [n, K] on mini-batches for W [n, P]; differentiable.

        shares: [n, K·N], how often each example was drawn, divided by the batch size.
        """
        log_p = torch.log_softmax(self.logits(W), dim=1)
        each = log_p.gather(1, self.label_rows.expand(len(W), 1, -1)).squeeze(1).neg()  # [n, E]
        ridge = W.square().sum(dim=-1, keepdim=True) * (self.ridge / 2)
        shape = len(W), self.num_domains, self.num_examples
        return each.view(shape).mean(dim=-1) + ridge, (each * shares).view(shape).sum(-1) + ridge

    def losses(self, W: Tensor) -> Tensor:
        """f(W) [K] for W [P]; differentiable."""
        return self.evaluate(W.unsqueeze(0), self.inputs.new_zeros(1))[0][0]


class Logistic(Classifier):
    """Multinomial logistic regression z = W x, W [C, d], x with a 1 for the bias: convex."""

    name = "logistic regression"

    @property
    def num_parameters(self) -> int:  # type: ignore[override]
        return self.num_classes * self.inputs.shape[1]

    def start(self, seed: int) -> Tensor:
        """W₁ = 0: Lemma 1's ‖W − W₁‖ ≤ R is then its ‖W‖ ≤ R."""
        return self.inputs.new_zeros(self.num_parameters)

    def logits(self, W: Tensor) -> Tensor:
        return W.view(len(W), self.num_classes, -1) @ self.inputs.T

    def losses_and_jacobian(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f(W) [K] and J [K, P], its rows ∇f_k, for W [P]."""
        model = torch.from_numpy(np.ascontiguousarray(W))
        return self.losses(model).numpy(), jacrev(self.losses)(model).numpy()

    def smoothness(self) -> float:
        """L: every f_k is L-smooth, L = ½ max_k λ_max(Σ_i x_i x_iᵀ/N).

        The Hessian is mean (diag(π) − ππᵀ) ⊗ xxᵀ, and diag(π) − ππᵀ ≤ ½ I for a distribution π.
        """
        x = self.inputs.view(self.num_domains, self.num_examples, -1)
        second_moments = x.transpose(1, 2) @ x / self.num_examples
        return 0.5 * float(torch.linalg.eigvalsh(second_moments).amax()) + self.ridge


class TanhNetwork(Classifier):
    """One hidden layer of 3 units, z = V [tanh(U x); 1]: smooth, and not convex in W = (U, V)."""

    name = "tanh network"
    hidden = 3

    @property
    def split(self) -> int:
        """Where V begins."""
        return self.hidden * self.inputs.shape[1]

    @property
    def num_parameters(self) -> int:  # type: ignore[override]
        return self.split + self.num_classes * (self.hidden + 1)

    def start(self, seed: int) -> Tensor:
        """W₁: normal, mean 0, standard deviation 1/√(inputs of the layer).

        The same for every seed: the theorems take W₁ as given, their expectation is over batches.
        """
        W = torch.from_numpy(stream(0, "start").standard_normal(self.num_parameters))
        W[: self.split] /= self.inputs.shape[1] ** 0.5
        W[self.split :] /= (self.hidden + 1) ** 0.5
        return W

    def logits(self, W: Tensor) -> Tensor:
        U = W[:, : self.split].view(len(W), self.hidden, -1)
        V = W[:, self.split :].view(len(W), self.num_classes, -1)
        activity = (U @ self.inputs.T).tanh()
        return torch.baddbmm(V[:, :, -1:], V[:, :, :-1], activity)


Problem = Parabolas | Logistic | TanhNetwork
BLOCK = 256  # iterations whose batches are drawn at once


def draw_batches(problem: Problem, seeds: Sequence[int]) -> Iterator[Tensor]:
    """Every iteration's `shares` [S, K·N], a row for each seed."""
    K, N, m = problem.num_domains, problem.num_examples, problem.batch_size
    offsets = np.arange(K)[:, None] * N
    for block in count():
        streams = [stream(seed, "batches", block=block) for seed in seeds]
        drawn = [random.integers(N, size=(BLOCK, K, m)) + offsets for random in streams]
        indices = torch.from_numpy(np.stack(drawn, axis=1)).flatten(2)  # [BLOCK, S, K·m]
        shares = torch.zeros(BLOCK, len(seeds), K * N, dtype=torch.float64)
        shares.scatter_add_(2, indices, torch.full_like(indices, 1 / m, dtype=shares.dtype))
        yield from shares


def gradient(p: Tensor, losses: Tensor, W: Tensor) -> Tensor:
    """Σ_k p_k ∇f_k(W) [n, P] of every lane, for p and losses [n, K]."""
    return torch.autograd.grad(losses, W, p, retain_graph=True)[0]


# --- what the theorems assume of a problem --------------------------------------------------------

LAM = 1.0  # λ of all experiments
PILOT_SEEDS = range(10_000, 10_020)  # the study's own seeds begin at 0
PILOT_STEPS, PILOT_STEP_SIZE, PILOT_KEEP_EVERY = 300, 0.1, 20
MARGIN = 1.1


class Constants(NamedTuple):
    """sigma ≥ ‖∇f̂_k^t(W_t)‖₂ for all k and t, and so ≥ ‖ĝ_t‖₂. gamma ≥ ‖f̂ᵗ(W_t)‖₂ for all t.
    smoothness L ≥ the spectral norm of every f_k's Hessian. jacobian ≥ that of the Jacobian of f.
    radius ≥ ‖W_t‖₂ and the norm of the minimisers; None: not needed."""

    sigma: float
    gamma: float
    smoothness: float
    jacobian: float
    radius: float | None = None

    def l2_mu(self, num_domains: int) -> float:
        """μ ≥ ‖f̂ − λ(p − q)‖₂ for uniform q: γ + λ sqrt(1 − 1/K)."""
        return self.gamma + LAM * math.sqrt(1 - 1 / num_domains)


# for |w| ≤ 1, where every run stays: |f_k'(w)| = 2|w ∓ 1|, ‖f(w)‖ and ‖J‖ = sqrt(8w² + 8) are ≤ 4
PARABOLAS = Constants(sigma=4.0, gamma=4.0, smoothness=2.0, jacobian=4.0)


def estimate_constants(problem: Logistic | TanhNetwork) -> Constants:
    """1.1 × the largest values seen in pilot runs.

    Pilot runs are SGD on the even mixture, on other seeds than the study's. Their mini-batches give
    σ and γ; the Hessians and Jacobians on all examples, at every 20th iterate, L and ‖J‖. For the
    logistic problem L has a proof (`Logistic.smoothness`), and R is 1.1 × the largest norm of a
    minimiser of p·f over the simplex's corners and centre.
    """
    sigma = gamma = 0.0
    points = []
    K = problem.num_domains
    W = torch.stack([problem.start(seed) for seed in PILOT_SEEDS])
    corners = torch.eye(K, dtype=W.dtype)
    batches = draw_batches(problem, PILOT_SEEDS)
    for _ in range(PILOT_STEPS):
        points.append(W)
        _, batch_f = problem.evaluate(W.requires_grad_(), next(batches))
        gradients = torch.stack([gradient(p.expand(len(W), -1), batch_f, W) for p in corners])
        sigma = max(sigma, float(torch.linalg.vector_norm(gradients, dim=-1).amax()))
        gamma = max(gamma, float(torch.linalg.vector_norm(batch_f.detach(), dim=1).amax()))
        W = W.detach() - PILOT_STEP_SIZE * gradients.mean(dim=0)
    visited = torch.cat(points[::PILOT_KEEP_EVERY]).detach()
    jacobian = torch.linalg.matrix_norm(vmap(jacrev(problem.losses))(visited), ord=2).amax()
    radius = None
    if isinstance(problem, Logistic):
        smoothness = problem.smoothness()
        solved = [
            minimise_mixture(problem.losses_and_jacobian, p, problem.num_parameters)
            for p in np.vstack([np.eye(K), np.full(K, 1 / K)])
        ]
        radius = MARGIN * max(float(np.linalg.norm(minimiser)) for _, minimiser in solved)
    else:
        hessians = vmap(jacrev(jacrev(problem.losses)), chunk_size=50)(visited)  # [n, K, P, P]
        smoothness = MARGIN * float(torch.linalg.eigvalsh(hessians).abs().amax())
    return Constants(MARGIN * sigma, MARGIN * gamma, smoothness, MARGIN * float(jacobian), radius)


# --- Algorithms 1 and 2 for every horizon and seed at once, each in its own lane ------------------

Function = Callable[[int], float]  # of T


class _Player(nn.Module):
    """A run's adversary, and its regret on the batches it answers and on all examples."""

    def __init__(self, adversary: Adversary) -> None:
        super().__init__()
        self.adversary = adversary
        self.played = RegretMeter.of(adversary)
        self.exact = RegretMeter.of(adversary)

    def forward(self, losses: Tensor) -> None:
        """Answers one iteration's f and f̂, [2, K]."""
        f, batch_f = losses
        adversary, game = self.adversary, self.exact
        if adversary.feeds_on == "dataset":
            play = adversary.update(f)
        payoff, _ = game.regularizer.evaluate(f, adversary.p, adversary.prior, game.lam)
        if adversary.feeds_on == "batch":
            play = adversary.update(batch_f)
            self.played.update(play)
        game.update(Play(f, payoff, None, play.counts))


def run_all_lanes(
    problem: Problem,
    adversary: Callable[[int], Adversary],
    model_step: Function,
    horizons: Sequence[int],
    seeds: Sequence[int],
) -> pd.DataFrame:
    """A line for every T and seed. A seed fixes W₁ and the batches, alike for every T.

    W_{t+1} = W_t − η_w ĝ_t, ĝ_t = Σ_k p_t^k ∇f̂_k^t(W_t); then p_{t+1} from the same f̂ᵗ(W_t).
    An adversary that feeds on the data set answers f(W_t) first, as Theorem 4 has it.

    | column       | of a run of T iterations                                                 |
    |--------------|--------------------------------------------------------------------------|
    | gradient     | mean ‖Σ_k p_t^k ∇f_k(W_t)‖², on all examples; with a best response p_t   |
    |              | it is the mean of ‖∇F(W_t)‖² (Danskin)                                   |
    | p_gap        | max_p mean L(p, W_t) − mean L(p_t, W_t), f on all examples               |
    | regret       | the same with the mini-batches' f̂ᵗ; NaN: not played on f̂                 |
    | regret_bound | what is proved for `regret` at μ = `mu`, per iteration; NaN: nothing is  |
    | mu           | μ_obs = max_t ‖ĥᵗ‖ in the regularizer's dual norm                        |
    | sigma        | max_t ‖ĝ_t‖₂; gamma: max_t ‖f̂ᵗ‖₂; radius: max_t ‖W_t‖₂                   |
    | mean_model   | W̄ = (1/T) Σ_t W_t [P]; mean_weights: p̄ = (1/T) Σ_t p_t [K]               |
    """
    horizons = sorted(horizons, reverse=True)
    players = [_Player(adversary(T)) for T in horizons for _ in seeds]
    lanes = Lanes(players)
    on_dataset = players[0].adversary.feeds_on == "dataset"
    W = torch.stack([problem.start(seed) for seed in seeds]).repeat(len(horizons), 1)
    step = torch.tensor([model_step(T) for T in horizons], dtype=W.dtype)
    step = step.repeat_interleave(len(seeds)).unsqueeze(1)
    sums = {"W": torch.zeros_like(W), "p": torch.zeros_like(lanes.state["adversary.p"])}
    sums["gradient"] = W.new_zeros(len(W))
    largest = {name: W.new_zeros(len(W)) for name in ("sigma", "gamma", "radius")}  # squared
    batches, lines = draw_batches(problem, seeds), []
    for t in range(1, horizons[0] + 1):
        shares = next(batches).repeat(len(horizons), 1)
        with torch.enable_grad():
            f, batch_f = problem.evaluate(W.requires_grad_(), shares)
        losses = torch.stack([f, batch_f], dim=1).detach()
        if on_dataset:
            lanes(losses)
        p = lanes.state["adversary.p"]
        g, batch_g = gradient(p, f, W), gradient(p, batch_f, W)
        W = W.detach()
        sums["W"] += W
        sums["p"] += p
        sums["gradient"] += g.square().sum(dim=1)
        for name, vectors in (("sigma", batch_g), ("gamma", losses[:, 1]), ("radius", W)):
            torch.maximum(largest[name], vectors.square().sum(dim=1), out=largest[name])
        if not on_dataset:
            lanes(losses)
        W = W - step * batch_g
        if t < horizons[-1]:
            continue
        n = len(W) - len(seeds)  # the runs of the shortest T are done and leave
        for i, seed in enumerate(seeds, n):
            player = players[i]
            lanes.put_back(i, player)
            played = player.played.summary(player.adversary)
            line = {"seed": seed, "T": t, "gradient": float(sums["gradient"][i]) / t}
            line["p_gap"] = float(player.exact.measured())
            line["regret"] = None if on_dataset else played["measured"]
            line["regret_bound"] = None if on_dataset else played["bound"]
            line["mu"] = played["mu"]
            line |= {name: float(values[i]) ** 0.5 for name, values in largest.items()}
            line["mean_model"] = (sums["W"][i] / t).numpy()
            line["mean_weights"] = (sums["p"][i] / t).numpy()
            lines.append(line)
        W, step = W[:n].clone(), step[:n]
        sums = {name: values[:n].clone() for name, values in sums.items()}
        largest = {name: values[:n].clone() for name, values in largest.items()}
        lanes.keep(n)
        horizons = horizons[:-1]
        if not horizons:
            break
    return pd.DataFrame(lines).astype({"regret": float, "regret_bound": float})


# --- the experiments: methods on problems, and what is proved of them -----------------------------


class Measure(NamedTuple):
    """One thing that a theorem bounds.

    Attributes:
        name: as in the tables and figures.
        column: of the runs.
        rate_name: the proved rate, for a reader.
        rate: its dependence on T, log factors included; None: nothing is proved.
        bound: the proved bound with the problem's constants; None: nothing is proved.
        printed_rate: a rate that the paper states and that is not true.
    """

    name: str
    column: str
    rate_name: str
    rate: Function | None = None
    bound: Function | None = None
    printed_rate: Function | None = None


@dataclass(frozen=True)
class Experiment:
    """A result of the paper, the adversary and step of W that it is about, as functions of T, and
    what is compared with a rate: each measure is a row of the table."""

    result: str
    adversary_name: str
    problem: Problem
    constants: Constants
    adversary: Callable[[int], Adversary]
    model_step: Function
    measures: tuple[Measure, ...]

    @property
    def title(self) -> str:
        return f"{self.result} ({self.adversary_name})"

    def run(self, horizons: Sequence[int], seeds: Sequence[int]) -> pd.DataFrame:
        """See `run_all_lanes`; with the duality gap of (W̄, p̄) if the problem is convex."""
        with torch.no_grad():
            runs = run_all_lanes(self.problem, self.adversary, self.model_step, horizons, seeds)
        if isinstance(self.problem, Logistic):
            losses = self.problem.losses_and_jacobian
            means = zip(runs["mean_model"], runs["mean_weights"], strict=True)
            runs["duality_gap"] = [duality_gap(losses, W, p) for W, p in means]
        return runs


@cache
def experiments() -> list[Experiment]:
    """All of them, in the paper's order. Takes seconds: pilot runs for the constants."""
    logistic, network, parabolas = Logistic(3), TanhNetwork(2), Parabolas()
    with one_thread():
        of_logistic, of_network = estimate_constants(logistic), estimate_constants(network)
    return [
        lemma1(logistic, of_logistic),
        theorem1(network, of_network),
        theorem2(network, of_network),
        theorem3(network, of_network),
        theorem3_kl(network, of_network),
        theorem4(network, of_network),
        theorem4(parabolas, PARABOLAS),
        theorem4_as_printed(parabolas, PARABOLAS),
    ]


def lemma1(problem: Problem, constants: Constants) -> Experiment:
    """Algorithm 1 on the convex problem: the duality gap of (W̄, p̄)."""
    K, sigma, gamma = problem.num_domains, constants.sigma, constants.gamma
    radius = constants.radius or 1.0

    def bound(T: int) -> float:  # without the term in log(1/δ)
        return (gamma * math.sqrt(math.log(K) / 2) + sigma * radius) / math.sqrt(T)

    return Experiment(
        "Lemma 1",
        "multiplicative weights",
        *(problem, constants),
        lambda T: MultiplicativeWeights(K, step="lemma1", total_steps=T, gamma=gamma),
        lambda T: schedules.lemma1_model_step(radius, sigma, T),
        (Measure("duality gap", "duality_gap", "T^(-1/2)", lambda T: T**-0.5, bound),),
    )


def theorem1(problem: Problem, constants: Constants) -> Experiment:
    """Algorithm 1 on the smooth non-convex problem."""
    K, (sigma, gamma, L, *_) = problem.num_domains, constants
    root = math.sqrt(2 * gamma * math.sqrt(2 * math.log(K)))

    def rate(T: int) -> float:
        return T ** (-1 / 3)

    def gradient_bound(T: int) -> float:
        return (gamma / root + root) * sigma * math.sqrt(L) * rate(T)

    def p_bound(T: int) -> float:
        return gamma * math.sqrt(math.log(K) / 2) * rate(T)

    return Experiment(
        "Theorem 1",
        "multiplicative weights",
        *(problem, constants),
        lambda T: MultiplicativeWeights(K, step="theorem1", total_steps=T, gamma=gamma),
        lambda T: schedules.theorem1_model_step(gamma, sigma, L, T, K),
        (
            Measure("‖∇L‖²", "gradient", "T^(-1/3)", rate, gradient_bound),
            p_gap("T^(-1/3)", rate, p_bound),
        ),
    )


def theorem2(problem: Problem, constants: Constants) -> Experiment:
    """Algorithm 2 with L2 and the plain step."""
    K, (sigma, gamma, L, *_) = problem.num_domains, constants
    mu = constants.l2_mu(K)
    scale = mu * sigma * math.sqrt(LAM * L)

    def gradient_bound(T: int) -> float:
        start = gamma * sigma * math.sqrt(LAM * L) / (2 * mu * math.sqrt(math.log(T)))
        drift = scale * math.pi**2 / 12 + 2 * scale * math.sqrt(math.log(T))
        return (start + drift) / math.sqrt(T)

    def p_bound(T: int) -> float:
        return schedules.regret_bound(0.0, mu, LAM, T) / T

    gradient_rate, p_rate = (lambda T: math.sqrt(math.log(T) / T)), (lambda T: math.log(T) / T)
    return Experiment(
        "Theorem 2",
        "L2, c = 0",
        *(problem, constants),
        lambda T: ProjectedAscent(K, L2(), LAM, c=0.0),
        theorem2_model_step(constants, K),
        (
            Measure("‖∇L‖²", "gradient", "(log T/T)^(1/2)", gradient_rate, gradient_bound),
            p_gap("log T/T", p_rate, p_bound),
        ),
    )


def theorem3(problem: Problem, constants: Constants) -> Experiment:
    """Algorithm 2 with L2 and Corollary 1's constant."""
    K = problem.num_domains
    mu = constants.l2_mu(K)

    def bound(T: int) -> float:
        return schedules.regret_bound(schedules.optimal_c(mu, LAM, T), mu, LAM, T) / T

    return Experiment(
        "Theorem 3",
        "L2, c = c*",
        *(problem, constants),
        lambda T: ProjectedAscent(K, L2(), LAM, c="auto", mu=mu, total_steps=T),
        theorem2_model_step(constants, K),
        (p_gap("R(c*)/T", bound, bound),),
    )


def theorem3_kl(problem: Problem, constants: Constants) -> Experiment:
    """The remark on other strongly convex regularizers: mirror ascent with KL."""
    K = problem.num_domains
    mu = 2 * constants.gamma  # (λ/2) |log(p/q)| is a mean of differences of losses

    def bound(T: int) -> float:
        c = schedules.kl_optimal_c(mu, LAM, T, K)
        return schedules.kl_regret_bound(c, mu, LAM, T, K) / T

    return Experiment(
        "Theorem 3, KL",
        "KL, c = c*",
        *(problem, constants),
        lambda T: MirrorAscent(K, LAM, c="auto", mu=mu, total_steps=T),
        theorem2_model_step(constants, K),
        (p_gap("R_KL(c*)/T", bound, bound),),
    )


def theorem4(problem: Problem, constants: Constants) -> Experiment:
    """Best response to the full-data losses, with L2: F is smooth."""
    K, sigma, gamma = problem.num_domains, constants.sigma, constants.gamma
    smoothness = schedules.theorem4_smoothness(constants.smoothness, constants.jacobian, LAM)

    def bound(T: int) -> float:  # at ξ_t = 0, and F(W₁) ≤ γ
        return (gamma + 1) * sigma * math.sqrt(smoothness / (2 * T))

    return Experiment(
        "Theorem 4, regularised",
        "best response, L2",
        *(problem, constants),
        lambda T: BestResponse(K, L2(), LAM, every=1),
        lambda T: schedules.theorem4_model_step(sigma, smoothness, T),
        (Measure("‖∇F‖²", "gradient", "T^(-1/2)", lambda T: T**-0.5, bound),),
    )


def theorem4_as_printed(problem: Problem, constants: Constants) -> Experiment:
    """Without the regularizer: F is not smooth, and what the paper states is not true."""
    K = problem.num_domains
    name = "none (printed: T^(-1/2))"
    return Experiment(
        "Theorem 4, as printed",
        "best response",
        *(problem, constants),
        lambda T: BestResponse(K, None, every=1),
        lambda T: schedules.theorem4_model_step(constants.sigma, constants.smoothness, T),
        (Measure("‖∇F‖²", "gradient", name, printed_rate=lambda T: T**-0.5),),
    )


def p_gap(rate_name: str, rate: Function, bound: Function) -> Measure:
    """max_p (1/T) Σ_t L(p, W_t) − (1/T) Σ_t L(p_t, W_t) with f̂ᵗ in L: the regret.

    Batch t is independent of W_t and p_t, so that for a fixed p its expectation is the same as with
    f, and the maximum can only raise it: E max_p ≥ max_p E, which is what the proofs bound. With f
    in L each run adds a martingale of the gap's own size, of mean 0 (the column `p_gap`).
    """
    return Measure("p-gap", "regret", rate_name, rate, bound)


def theorem2_model_step(constants: Constants, num_domains: int) -> Function:
    """η_w of Theorem 2."""
    mu, sigma, L = constants.l2_mu(num_domains), constants.sigma, constants.smoothness
    return lambda T: schedules.theorem2_model_step(mu, sigma, L, LAM, T)


# --- the study ------------------------------------------------------------------------------------

HORIZONS = (1_000, 3_162, 10_000, 31_623, 100_000)  # two decades
QUICK_HORIZONS = (100, 316, 1_000)
ROUNDING = 1e-12  # relative: sums of up to 10⁵ numbers in float64


class Row(NamedTuple):
    """One measure of one experiment, beside what is proved of it.

    Attributes:
        values: of the measure, a line for every T, a column for every seed.
        slope, low, high: d log E[measure]/d log T and its 95 % interval; NaN where a mean is not
            > 0.
        rate_slope: the slope of the proved rate fitted over the same T, log factors included; NaN
            where nothing is proved.
        share: the largest mean measure/proved bound over T; NaN likewise.
    """

    experiment: Experiment
    measure: Measure
    values: pd.DataFrame
    slope: float
    low: float
    high: float
    rate_slope: float
    share: float

    @property
    def verdict(self) -> str:
        """A rate is an upper bound: it holds if the interval's upper end is at most its slope."""
        if math.isnan(self.rate_slope):
            return "nothing proved"
        return "holds" if self.high <= self.rate_slope else "not shown"


def find(seeds: Sequence[int], quick: bool, processes: int) -> Findings:
    """Run everything. Violated: a run's regret that exceeds its proved bound, which is a bug."""
    # An experiment cannot travel between processes, for it holds functions. Each process makes all
    # of them anew, alike, and is told which to run.
    horizons = QUICK_HORIZONS if quick else HORIZONS
    jobs = [(i, horizons, tuple(seeds)) for i in range(len(experiments()))]
    results, rows = [], []
    for experiment, runs in zip(experiments(), side_by_side(_run, jobs, processes), strict=True):
        results.append((experiment, runs))
        for measure in experiment.measures:
            row = row_of(experiment, measure, runs)
            rows.append(row)
            rate = "–" if math.isnan(row.rate_slope) else f"{row.rate_slope:.3f}"
            slope = f"{row.slope:.3f} [{row.low:.3f}, {row.high:.3f}]"
            print(f"{experiment.title}, {measure.name}: slope {slope}, rate {rate}: {row.verdict}")
    broken = [line for result in results for line in broken_assumptions(*result)]
    violations = [line for result in results for line in regret_violations(*result)]
    checks = sum(int(runs["regret_bound"].count()) for _, runs in results)
    table, curve = table_of(rows), regret_curve()
    c, best = curve.loc[curve["note"] == "c*", ["c", "regret_bound"]].iloc[0]
    plain = curve["regret_bound"].iloc[0]
    words = [
        f"regret bound: T = {CURVE_T:g}, μ = {CURVE_MU:g}, λ = {LAM:g}: c* = {c:.4f}, R(c*) = "
        f"{best:.3f}, plain step {plain:.3f}, ratio {best / plain:.4f}",
        "assumptions exceeded:" if broken else "σ, γ and R bounded what every run met",
        *(f"  {line}" for line in broken),
        f"regret at most its bound at μ_obs in {checks - len(violations)} of {checks} runs",
    ]
    files = {
        "regret_bound.csv": curve.to_csv(index=False),
        "convergence.md": to_markdown(table, horizons),
        "convergence.csv": table.to_csv(index=False),
        "runs.csv": runs_csv(results),
        "regret_bound": draw_regret_bound(curve),
        "convergence": draw_convergence(rows),
    }
    return Findings(files, words, violations)


def _run(index: int, horizons: Sequence[int], seeds: Sequence[int]) -> pd.DataFrame:
    return experiments()[index].run(horizons, seeds)


def regret_violations(experiment: Experiment, runs: pd.DataFrame) -> list[str]:
    """A line for every run whose measured regret exceeds what is proved at its own μ_obs.

    The bound holds for every realisation: such a line is a bug in an update or in a bound.
    """
    holds = runs["regret"] <= runs["regret_bound"] * (1 + ROUNDING)
    return [
        f"{experiment.title} on {experiment.problem.name}, T={run.T}, seed={run.seed}: regret "
        f"{run.regret:.6g} exceeds its bound {run.regret_bound:.6g} at μ_obs {run.mu:.6g}"
        for run in runs[~holds & runs["regret_bound"].notna()].itertuples()
    ]


def broken_assumptions(experiment: Experiment, runs: pd.DataFrame) -> list[str]:
    """A line for every constant that a run exceeded."""
    lines = []
    for name in ("sigma", "gamma", "radius"):
        seen, limit = runs[name].max(), getattr(experiment.constants, name)
        if limit is not None and seen > limit:
            lines.append(f"{experiment.title}: {name} reached {seen:.4g}, assumed {limit:.4g}")
    return lines


def row_of(experiment: Experiment, measure: Measure, runs: pd.DataFrame) -> Row:
    """What the runs say of a measure."""
    values = runs.pivot(index="T", columns="seed", values=measure.column)
    T = values.index.tolist()
    rate, share = math.nan, math.nan
    if measure.rate is not None:
        rate = log_slope(T, [measure.rate(t) for t in T])
    if measure.bound is not None:
        share = float((values.mean(axis=1) / [measure.bound(t) for t in T]).max())
    return Row(experiment, measure, values, *measured_slope(T, values.to_numpy()), rate, share)


def log_slope(horizons: Sequence[int], values: Sequence[float] | np.ndarray) -> float:
    """The least-squares slope of log values on log T; NaN unless all values are > 0."""
    if np.min(values) <= 0:
        return math.nan
    return float(np.polyfit(np.log(horizons), np.log(values), 1)[0])


def measured_slope(horizons: Sequence[int], values: np.ndarray) -> tuple[float, float, float]:
    """The slope of the mean over seeds, for the theorems are about expectations; low and high end.

    The 95 % interval is the jackknife's: with s_i the slope without seed i and s̄ their mean,
    slope ± t_{n−1} · sqrt((n−1)/n Σ (s_i − s̄)²). Batches of one seed are alike for every T, so
    that seeds, not single runs, are the independent units.

    values: [len(horizons), n], a column for every seed, n ≥ 2.
    """
    n = values.shape[1]
    slope = log_slope(horizons, values.mean(axis=1))
    left_out = np.array(
        [log_slope(horizons, np.delete(values, i, axis=1).mean(axis=1)) for i in range(n)]
    )
    spread = np.sqrt((n - 1) / n * np.square(left_out - left_out.mean()).sum())
    half = float(stats.t.ppf(0.975, n - 1) * spread)
    return slope, slope - half, slope + half


# --- tables and figures ---------------------------------------------------------------------------

CURVE_T, CURVE_MU = 1_000_000, 100.0  # of the regret bound's curve


def regret_curve() -> pd.DataFrame:
    """The paper's illustration of Corollary 1: R(c) = λc + (μ²/2λ)(ln(T/c + 1) + 1).

    c goes from 1 to 10⁵ on a log grid that holds c*, which is noted; the first line is R(0), of
    the plain step 1/(λt).
    """
    best = schedules.optimal_c(CURVE_MU, LAM, CURVE_T)
    grid = [0, *np.sort(np.append(np.geomspace(1.0, 1e5, 200), best)).tolist()]
    notes = {0: "plain step 1/(lam t)", best: "c*"}
    lines = [(c, schedules.regret_bound(c, CURVE_MU, LAM, CURVE_T), notes.get(c, "")) for c in grid]
    return pd.DataFrame(lines, columns=["c", "regret_bound", "note"], dtype=object)


def table_of(rows: Sequence[Row]) -> pd.DataFrame:
    """A row for each measure, with its mean over seeds at every T."""
    return pd.DataFrame(
        {
            "result": row.experiment.result,
            "adversary": row.experiment.adversary_name,
            "problem": row.experiment.problem.name,
            "measure": row.measure.name,
            "rate": row.measure.rate_name,
            "rate_slope": row.rate_slope,
            "slope": row.slope,
            "slope_low": row.low,
            "slope_high": row.high,
            "share_of_bound": row.share,
            "verdict": row.verdict,
            "seeds": row.values.shape[1],
            **{f"mean_T={T}": values.mean() for T, values in row.values.iterrows()},
        }
        for row in rows
    )


def to_markdown(table: pd.DataFrame, horizons: Sequence[int]) -> str:
    """The table as docs/theory.md shows it, and what its numbers are."""

    def text(value: float, digits: str = ".3f") -> str:
        return "–" if math.isnan(value) else f"{value:{digits}}".replace("-", "−")

    shown = {
        "result": table["result"] + " (" + table["adversary"] + ", " + table["problem"] + ")",
        "measure": table["measure"],
        "at largest T": table[f"mean_T={horizons[-1]}"].map("{:.3g}".format),
        "proved rate": table["rate"],
        "its slope": table["rate_slope"].map(text),
        "measured slope": table["slope"].map(text)
        + (" [" + table["slope_low"].map(text) + ", " + table["slope_high"].map(text) + "]"),
        "share": [text(share, ".2g") for share in table["share_of_bound"]],
        "verdict": table["verdict"],
    }
    caption = (
        f"Measured slope on log axes over T = {horizons[0]:,} to {horizons[-1]:,} "
        f"({len(horizons)} values, n = {table['seeds'][0]} seeds) of the mean over seeds, with its "
        "95 % interval (jackknife over seeds, Student's t), beside the slope of the proved rate "
        "over the same T, log factors included. A rate is an upper bound: it holds when the "
        "interval's upper end is at most the rate's slope. Share: the largest mean measure divided "
        "by the proved bound."
    )
    lines = [list(line) for line in zip(*shown.values(), strict=True)]
    text_columns = ["result", "measure", "proved rate", "verdict"]
    return f"{caption}\n\n{markdown_table([*shown], lines, text_columns)}\n"


def runs_csv(results: Sequence[tuple[Experiment, pd.DataFrame]]) -> str:
    """One line for each run: what the table's numbers were made of."""
    columns = "T seed gradient p_gap regret regret_bound mu sigma gamma radius duality_gap"
    named = [
        runs.assign(result=e.result, adversary=e.adversary_name, problem=e.problem.name)
        for e, runs in results
    ]
    head = ["result", "adversary", "problem", *columns.split()]
    return pd.concat(named).to_csv(index=False, columns=head)


def draw_regret_bound(curve: pd.DataFrame) -> Figure:
    """R(c) on a log axis for c, c* marked, the plain step's level dashed."""
    plain = curve["regret_bound"].iloc[0]
    c, best = curve.loc[curve["note"] == "c*", ["c", "regret_bound"]].iloc[0]
    with figure_style():
        figure = Figure(figsize=(5.0, 3.3), layout="constrained")
        axis = figure.subplots()
        axis.set_title(f"T = {CURVE_T:,}, μ = {CURVE_MU:g}, λ = {LAM:g}")
        axis.plot(curve["c"][1:], curve["regret_bound"][1:], lw=1.8, label="step 1/(λ(t + c))")
        label = f"plain step 1/(λt): {plain:,.0f}"
        axis.axhline(plain, color="black", linestyle="--", linewidth=1.2, label=label)
        label = f"c* = {c:,.0f}: {best:,.0f} ({best / plain:.2f} of it)"
        axis.plot(c, best, "o", color="C1", markersize=7, label=label)
        axis.set(xscale="log", xlabel="constant c", ylabel="bound on the regret after T steps")
        axis.set_ylim(bottom=0)
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.legend(loc="lower left")
    return figure


def draw_convergence(rows: Sequence[Row]) -> Figure:
    """A panel for every row of the table: the measure's mean over seeds against T on log axes, with
    a band from the smallest to the largest.

    The dashed line is the proved rate through the first mean: the measure should not fall more
    slowly. The dotted one is the proved bound itself, with the problem's constants.
    """
    with figure_style():
        figure = Figure(figsize=(11.0, 2.6 * math.ceil(len(rows) / 4) + 0.3), layout="constrained")
        axes = figure.subplots(math.ceil(len(rows) / 4), 4, squeeze=False).ravel()
        handles: dict[str, Any] = {}
        for axis, row in zip(axes, rows, strict=False):
            _draw_row(axis, row)
            artists, labels = axis.get_legend_handles_labels()
            handles |= dict(zip(labels, artists, strict=True))
        for axis in axes[len(rows) :]:
            axis.remove()
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return figure


def _draw_row(axis: Axes, row: Row) -> None:
    T, measure = row.values.index.tolist(), row.measure
    mean, low, high = (row.values.agg(of, axis=1).to_numpy() for of in ("mean", "min", "max"))
    low = np.where(low > 0, low, mean / 10)  # a log axis has no place for a gap below 0
    axis.fill_between(T, low, high, color="C0", alpha=0.2, lw=0, label="smallest to largest seed")
    axis.plot(T, mean, color="C0", marker="o", markersize=3.5, linewidth=1.5, label="mean")
    for label, rate, colour, dashes in (
        ("proved rate", measure.rate, "black", "--"),
        ("rate as printed, not true", measure.printed_rate, "C6", "-."),
    ):
        if rate is not None:
            shape = np.array([rate(t) for t in T])
            line = shape / shape[0] * mean[0]
            axis.plot(T, line, color=colour, linestyle=dashes, linewidth=1.2, label=label)
    if measure.bound is not None:
        bound = [measure.bound(t) for t in T]
        axis.plot(T, bound, ":", color="C1", linewidth=1.6, label="proved bound")
    axis.set(xscale="log", yscale="log", xlabel="iterations T", ylabel=measure.name)
    numbers = f"slope {row.slope:.3f} [{row.low:.3f}, {row.high:.3f}]".replace("-", "−")
    names = f"{row.experiment.adversary_name}, {row.experiment.problem.name}"
    axis.set_title(f"{row.experiment.result}\n{names}\n{numbers}", fontsize=7.5)


def main(arguments: Sequence[str] | None = None) -> int:
    return run_study(find, "theory", __doc__ or "", arguments)


if __name__ == "__main__":
    sys.exit(main())
