"""The study's experiments: methods on problems, what is measured, and what is proved of it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from robustmd.adversary import (
    L2,
    Adversary,
    BestResponse,
    MirrorAscent,
    MultiplicativeWeights,
    ProjectedAscent,
    schedules,
)
from robustmd.studies.saddle import duality_gap
from robustmd.studies.theory.classifiers import Logistic, TanhNetwork
from robustmd.studies.theory.constants import PARABOLAS, Constants, estimate_constants
from robustmd.studies.theory.problems import Parabolas, Problem
from robustmd.studies.theory.runs import Outcome, Runs

LAM = 1.0
Function = Callable[[int], float]  # of T


@dataclass(frozen=True)
class Measure:
    """One thing that a theorem bounds.

    Attributes:
        name: as in the tables and figures.
        value: of one run.
        rate: the proved rate's dependence on T, log factors included; None: nothing is proved.
        rate_name: the same for a reader.
        bound: the proved bound with the problem's constants; None: nothing is proved.
        printed_rate: a rate that the paper states and that is not true.
    """

    name: str
    value: Callable[[Outcome], float]
    rate: Function | None
    rate_name: str
    bound: Function | None
    printed_rate: Function | None = None


@dataclass(frozen=True)
class Experiment:
    """Runs, and the measures taken of them.

    Attributes:
        result: of the paper, e.g. "Theorem 1".
        adversary_name: the rule for p.
        runs: method and problem.
        constants: what the step sizes assume.
        measures: one row of the table each.
    """

    result: str
    adversary_name: str
    runs: Runs
    constants: Constants
    measures: tuple[Measure, ...]

    @property
    def problem_name(self) -> str:
        return self.runs.problem.name


def gradient_of(run: Outcome) -> float:
    return run.gradient


def p_gap_of(run: Outcome) -> float:
    """max_p (1/T) Σ_t L(p, W_t) − (1/T) Σ_t L(p_t, W_t) with f̂ᵗ in L: the regret.

    Batch t is independent of W_t and p_t, so that for a fixed p its expectation is the same as with
    f, and the maximum can only raise it: E max_p ≥ max_p E, which is what the proofs bound. With f
    in L each run adds a martingale of the gap's own size, of mean 0 (`Outcome.p_gap`).
    """
    return math.nan if run.regret is None else run.regret


def experiments() -> list[Experiment]:
    """All of them, in the paper's order. Takes seconds: pilot runs for the constants."""
    logistic, network, parabolas = Logistic(3), TanhNetwork(2), Parabolas()
    constants = estimate_constants(network)
    return [
        lemma1(logistic, estimate_constants(logistic)),
        theorem1(network, constants),
        theorem2(network, constants),
        theorem3(network, constants),
        theorem3_kl(network, constants),
        theorem4(network, constants),
        theorem4(parabolas, PARABOLAS),
        theorem4_as_printed(parabolas, PARABOLAS),
    ]


def lemma1(problem: Logistic, constants: Constants) -> Experiment:
    """Algorithm 1 on the convex problem: the duality gap of (W̄, p̄)."""
    K, sigma, gamma = problem.num_domains, constants.sigma, constants.gamma
    radius = constants.radius or 1.0

    def gap(run: Outcome) -> float:
        return duality_gap(problem.losses_and_jacobian, run.mean_model, run.mean_weights)

    def bound(T: int) -> float:  # without the term in log(1/δ)
        return (gamma * math.sqrt(math.log(K) / 2) + sigma * radius) / math.sqrt(T)

    runs = Runs(
        problem,
        lambda T: MultiplicativeWeights(K, step="lemma1", total_steps=T, gamma=gamma),
        lambda T: schedules.lemma1_model_step(radius, sigma, T),
    )
    measure = Measure("duality gap", gap, lambda T: T**-0.5, "T^(-1/2)", bound)
    return Experiment("Lemma 1", "multiplicative weights", runs, constants, (measure,))


def theorem1(problem: Problem, constants: Constants) -> Experiment:
    """Algorithm 1 on the smooth non-convex problem."""
    K, sigma, gamma, L = _symbols(problem, constants)
    root = math.sqrt(2 * gamma * math.sqrt(2 * math.log(K)))

    def rate(T: int) -> float:
        return T ** (-1 / 3)

    def gradient_bound(T: int) -> float:
        return (gamma / root + root) * sigma * math.sqrt(L) * rate(T)

    def p_bound(T: int) -> float:
        return gamma * math.sqrt(math.log(K) / 2) * rate(T)

    runs = Runs(
        problem,
        lambda T: MultiplicativeWeights(K, step="theorem1", total_steps=T, gamma=gamma),
        lambda T: schedules.theorem1_model_step(gamma, sigma, L, T, K),
    )
    measures = (
        Measure("‖∇L‖²", gradient_of, rate, "T^(-1/3)", gradient_bound),
        Measure("p-gap", p_gap_of, rate, "T^(-1/3)", p_bound),
    )
    return Experiment("Theorem 1", "multiplicative weights", runs, constants, measures)


def theorem2(problem: Problem, constants: Constants) -> Experiment:
    """Algorithm 2 with L2 and the plain step."""
    K, sigma, gamma, L = _symbols(problem, constants)
    mu = l2_mu(problem, constants)
    scale = mu * sigma * math.sqrt(LAM * L)

    def gradient_rate(T: int) -> float:
        return math.sqrt(math.log(T) / T)

    def gradient_bound(T: int) -> float:
        start = gamma * sigma * math.sqrt(LAM * L) / (2 * mu * math.sqrt(math.log(T)))
        drift = scale * math.pi**2 / 12 + 2 * scale * math.sqrt(math.log(T))
        return (start + drift) / math.sqrt(T)

    def p_rate(T: int) -> float:
        return math.log(T) / T

    def p_bound(T: int) -> float:
        return schedules.regret_bound(0.0, mu, LAM, T) / T

    measures = (
        Measure("‖∇L‖²", gradient_of, gradient_rate, "(log T/T)^(1/2)", gradient_bound),
        Measure("p-gap", p_gap_of, p_rate, "log T/T", p_bound),
    )
    runs = Runs(problem, lambda T: ProjectedAscent(K, L2(), LAM, c=0.0), _model_step(constants, mu))
    return Experiment("Theorem 2", "L2, c = 0", runs, constants, measures)


def theorem3(problem: Problem, constants: Constants) -> Experiment:
    """Algorithm 2 with L2 and Corollary 1's constant."""
    K, mu = problem.num_domains, l2_mu(problem, constants)

    def bound(T: int) -> float:
        return schedules.regret_bound(schedules.optimal_c(mu, LAM, T), mu, LAM, T) / T

    def adversary(T: int) -> Adversary:
        return ProjectedAscent(K, L2(), LAM, c="auto", mu=mu, total_steps=T)

    runs = Runs(problem, adversary, _model_step(constants, mu))
    gap = Measure("p-gap", p_gap_of, bound, "R(c*)/T", bound)
    return Experiment("Theorem 3", "L2, c = c*", runs, constants, (gap,))


def theorem3_kl(problem: Problem, constants: Constants) -> Experiment:
    """The remark on other strongly convex regularizers: mirror ascent with KL."""
    K = problem.num_domains
    mu = 2 * constants.gamma  # (λ/2) |log(p/q)| is a mean of differences of losses

    def bound(T: int) -> float:
        c = schedules.kl_optimal_c(mu, LAM, T, K)
        return schedules.kl_regret_bound(c, mu, LAM, T, K) / T

    def adversary(T: int) -> Adversary:
        return MirrorAscent(K, LAM, c="auto", mu=mu, total_steps=T)

    runs = Runs(problem, adversary, _model_step(constants, l2_mu(problem, constants)))
    gap = Measure("p-gap", p_gap_of, bound, "R_KL(c*)/T", bound)
    return Experiment("Theorem 3, KL", "KL, c = c*", runs, constants, (gap,))


def theorem4(problem: Problem, constants: Constants) -> Experiment:
    """Best response to the full-data losses, with L2: F is smooth."""
    K, sigma, gamma, _ = _symbols(problem, constants)
    smoothness = schedules.theorem4_smoothness(constants.smoothness, constants.jacobian, LAM)

    def bound(T: int) -> float:  # at ξ_t = 0, and F(W₁) ≤ γ
        return (gamma + 1) * sigma * math.sqrt(smoothness / (2 * T))

    runs = Runs(
        problem,
        lambda T: BestResponse(K, L2(), LAM, every=1),
        lambda T: schedules.theorem4_model_step(sigma, smoothness, T),
    )
    measure = Measure("‖∇F‖²", gradient_of, lambda T: T**-0.5, "T^(-1/2)", bound)
    return Experiment("Theorem 4, regularised", "best response, L2", runs, constants, (measure,))


def theorem4_as_printed(problem: Problem, constants: Constants) -> Experiment:
    """Without the regularizer: F is not smooth, and what the paper states is not true."""
    K, sigma, _, L = _symbols(problem, constants)
    runs = Runs(
        problem,
        lambda T: BestResponse(K, None, every=1),
        lambda T: schedules.theorem4_model_step(sigma, L, T),
    )
    measure = Measure(
        "‖∇F‖²", gradient_of, None, "none (printed: T^(-1/2))", None, printed_rate=lambda T: T**-0.5
    )
    return Experiment("Theorem 4, as printed", "best response", runs, constants, (measure,))


def l2_mu(problem: Problem, constants: Constants) -> float:
    """μ ≥ ‖f̂ − λ(p − q)‖₂ for uniform q: γ + λ sqrt(1 − 1/K)."""
    return constants.gamma + LAM * math.sqrt(1 - 1 / problem.num_domains)


def _model_step(constants: Constants, mu: float) -> Function:
    """η_w of Theorem 2."""
    return lambda T: schedules.theorem2_model_step(
        mu, constants.sigma, constants.smoothness, LAM, T
    )


def _symbols(problem: Problem, constants: Constants) -> tuple[int, float, float, float]:
    """K, σ, γ, L."""
    return problem.num_domains, constants.sigma, constants.gamma, constants.smoothness
