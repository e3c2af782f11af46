"""The study's experiments: methods on problems, and what is proved of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from robustmd.adversary import (
    L2,
    BestResponse,
    MirrorAscent,
    MultiplicativeWeights,
    ProjectedAscent,
    schedules,
)
from robustmd.studies.theory.problems import Logistic, Parabolas, Problem, TanhNetwork
from robustmd.studies.theory.runs import LAM, PARABOLAS, Constants, Runs, estimate_constants

Function = Callable[[int], float]  # of T


@dataclass(frozen=True)
class Measure:
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
    """Runs, and the measures taken of them: each is a row of the table.

    Attributes:
        result: of the paper, e.g. "Theorem 1".
        adversary_name: the rule for p.
        runs: method and problem.
        constants: what the step sizes assume.
        measures: what is compared with a rate.
    """

    result: str
    adversary_name: str
    runs: Runs
    constants: Constants
    measures: tuple[Measure, ...]

    @property
    def names(self) -> tuple[str, str, str]:
        """Result, adversary and problem."""
        return self.result, self.adversary_name, self.runs.problem.name


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

    def bound(T: int) -> float:  # without the term in log(1/δ)
        return (gamma * math.sqrt(math.log(K) / 2) + sigma * radius) / math.sqrt(T)

    runs = Runs(
        problem,
        lambda T: MultiplicativeWeights(K, step="lemma1", total_steps=T, gamma=gamma),
        lambda T: schedules.lemma1_model_step(radius, sigma, T),
    )
    measure = Measure("duality gap", "duality_gap", "T^(-1/2)", lambda T: T**-0.5, bound)
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
        Measure("‖∇L‖²", "gradient", "T^(-1/3)", rate, gradient_bound),
        _p_gap("T^(-1/3)", rate, p_bound),
    )
    return Experiment("Theorem 1", "multiplicative weights", runs, constants, measures)


def theorem2(problem: Problem, constants: Constants) -> Experiment:
    """Algorithm 2 with L2 and the plain step."""
    K, sigma, gamma, L = _symbols(problem, constants)
    mu = constants.l2_mu(K)
    scale = mu * sigma * math.sqrt(LAM * L)

    def gradient_bound(T: int) -> float:
        start = gamma * sigma * math.sqrt(LAM * L) / (2 * mu * math.sqrt(math.log(T)))
        drift = scale * math.pi**2 / 12 + 2 * scale * math.sqrt(math.log(T))
        return (start + drift) / math.sqrt(T)

    def p_bound(T: int) -> float:
        return schedules.regret_bound(0.0, mu, LAM, T) / T

    runs = Runs(problem, lambda T: ProjectedAscent(K, L2(), LAM, c=0.0), _model_step(constants, K))
    gradient_rate, p_rate = (lambda T: math.sqrt(math.log(T) / T)), (lambda T: math.log(T) / T)
    measures = (
        Measure("‖∇L‖²", "gradient", "(log T/T)^(1/2)", gradient_rate, gradient_bound),
        _p_gap("log T/T", p_rate, p_bound),
    )
    return Experiment("Theorem 2", "L2, c = 0", runs, constants, measures)


def theorem3(problem: Problem, constants: Constants) -> Experiment:
    """Algorithm 2 with L2 and Corollary 1's constant."""
    K = problem.num_domains
    mu = constants.l2_mu(K)

    def bound(T: int) -> float:
        return schedules.regret_bound(schedules.optimal_c(mu, LAM, T), mu, LAM, T) / T

    runs = Runs(
        problem,
        lambda T: ProjectedAscent(K, L2(), LAM, c="auto", mu=mu, total_steps=T),
        _model_step(constants, K),
    )
    gap = _p_gap("R(c*)/T", bound, bound)
    return Experiment("Theorem 3", "L2, c = c*", runs, constants, (gap,))


def theorem3_kl(problem: Problem, constants: Constants) -> Experiment:
    """The remark on other strongly convex regularizers: mirror ascent with KL."""
    K = problem.num_domains
    mu = 2 * constants.gamma  # (λ/2) |log(p/q)| is a mean of differences of losses

    def bound(T: int) -> float:
        c = schedules.kl_optimal_c(mu, LAM, T, K)
        return schedules.kl_regret_bound(c, mu, LAM, T, K) / T

    runs = Runs(
        problem,
        lambda T: MirrorAscent(K, LAM, c="auto", mu=mu, total_steps=T),
        _model_step(constants, K),
    )
    gap = _p_gap("R_KL(c*)/T", bound, bound)
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
    measure = Measure("‖∇F‖²", "gradient", "T^(-1/2)", lambda T: T**-0.5, bound)
    return Experiment("Theorem 4, regularised", "best response, L2", runs, constants, (measure,))


def theorem4_as_printed(problem: Problem, constants: Constants) -> Experiment:
    """Without the regularizer: F is not smooth, and what the paper states is not true."""
    K, sigma, _, L = _symbols(problem, constants)
    runs = Runs(
        problem,
        lambda T: BestResponse(K, None, every=1),
        lambda T: schedules.theorem4_model_step(sigma, L, T),
    )
    name = "none (printed: T^(-1/2))"
    measure = Measure("‖∇F‖²", "gradient", name, printed_rate=lambda T: T**-0.5)
    return Experiment("Theorem 4, as printed", "best response", runs, constants, (measure,))


def _p_gap(rate_name: str, rate: Function, bound: Function) -> Measure:
    """max_p (1/T) Σ_t L(p, W_t) − (1/T) Σ_t L(p_t, W_t) with f̂ᵗ in L: the regret.

    Batch t is independent of W_t and p_t, so that for a fixed p its expectation is the same as with
    f, and the maximum can only raise it: E max_p ≥ max_p E, which is what the proofs bound. With f
    in L each run adds a martingale of the gap's own size, of mean 0 (the column `p_gap`).
    """
    return Measure("p-gap", "regret", rate_name, rate, bound)


def _model_step(constants: Constants, num_domains: int) -> Function:
    """η_w of Theorem 2."""
    mu, sigma, L = constants.l2_mu(num_domains), constants.sigma, constants.smoothness
    return lambda T: schedules.theorem2_model_step(mu, sigma, L, LAM, T)


def _symbols(problem: Problem, constants: Constants) -> tuple[int, float, float, float]:
    """K, σ, γ, L."""
    return problem.num_domains, constants.sigma, constants.gamma, constants.smoothness
