"""The study's experiments, in the paper's order; Theorem 4 is in a file of its own."""

import math

from robustmd.adversary import (
    L2,
    Adversary,
    MirrorAscent,
    MultiplicativeWeights,
    ProjectedAscent,
    schedules,
)
from robustmd.theory.classifiers import Classifier, Logistic
from robustmd.theory.constants import Constants, estimate_constants
from robustmd.theory.experiment import LAM, Experiment, Function, Measure, gradient_of, p_gap_of
from robustmd.theory.lanes import Runs
from robustmd.theory.problems import convex_problem, smooth_problem
from robustmd.theory.saddle import duality_gap
from robustmd.theory.theorem4 import theorem4, theorem4_as_printed, theorem4_regularised_parabolas


def experiments() -> list[Experiment]:
    """All of them, in the paper's order. Takes seconds: pilot runs for the constants."""
    logistic = convex_problem()
    network = smooth_problem()
    constants = estimate_constants(network)
    return [
        lemma1(logistic, estimate_constants(logistic)),
        theorem1(network, constants),
        theorem2(network, constants),
        theorem3(network, constants),
        theorem3_kl(network, constants),
        theorem4(network, constants),
        theorem4_regularised_parabolas(),
        theorem4_as_printed(),
    ]


def lemma1(problem: Logistic, constants: Constants) -> Experiment:
    """Algorithm 1 on the convex problem: the duality gap of (W̄, p̄)."""
    K, sigma, gamma = problem.num_domains, constants.sigma, constants.gamma
    radius = constants.radius or 1.0

    def bound(T: int) -> float:  # without the term in log(1/δ)
        return (gamma * math.sqrt(math.log(K) / 2) + sigma * radius) / math.sqrt(T)

    gap = Measure(
        "duality gap",
        lambda run: duality_gap(problem, run.mean_model, run.mean_weights),
        lambda T: T**-0.5,
        "T^(-1/2)",
        bound,
    )
    runs = Runs(
        problem,
        lambda T: MultiplicativeWeights(K, step="lemma1", total_steps=T, gamma=gamma),
        lambda T: schedules.lemma1_model_step(radius, sigma, T),
    )
    name = "multiplicative weights"
    return Experiment("Lemma 1", "logistic regression", name, runs, constants, (gap,))


def theorem1(problem: Classifier, constants: Constants) -> Experiment:
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
    name = "multiplicative weights"
    return Experiment("Theorem 1", "tanh network", name, runs, constants, measures)


def theorem2(problem: Classifier, constants: Constants) -> Experiment:
    """Algorithm 2 with L2 and the plain step."""
    K, sigma, gamma, L = _symbols(problem, constants)
    mu = l2_mu(problem, constants)
    scale = mu * sigma * math.sqrt(LAM * L)

    def gradient_bound(T: int) -> float:
        start = gamma * sigma * math.sqrt(LAM * L) / (2 * mu * math.sqrt(math.log(T)))
        drift = scale * math.pi**2 / 12 + 2 * scale * math.sqrt(math.log(T))
        return (start + drift) / math.sqrt(T)

    measures = (
        Measure(
            "‖∇L‖²",
            gradient_of,
            lambda T: math.sqrt(math.log(T) / T),
            "(log T/T)^(1/2)",
            gradient_bound,
        ),
        Measure(
            "p-gap",
            p_gap_of,
            lambda T: math.log(T) / T,
            "log T/T",
            lambda T: schedules.regret_bound(0.0, mu, LAM, T) / T,
        ),
    )
    runs = Runs(problem, lambda T: ProjectedAscent(K, L2(), LAM, c=0.0), _model_step(constants, mu))
    return Experiment("Theorem 2", "tanh network", "L2, c = 0", runs, constants, measures)


def theorem3(problem: Classifier, constants: Constants) -> Experiment:
    """Algorithm 2 with L2 and Corollary 1's constant."""
    K, mu = problem.num_domains, l2_mu(problem, constants)

    def bound(T: int) -> float:
        return schedules.regret_bound(schedules.optimal_c(mu, LAM, T), mu, LAM, T) / T

    def adversary(T: int) -> Adversary:
        return ProjectedAscent(K, L2(), LAM, c="auto", mu=mu, total_steps=T)

    runs = Runs(problem, adversary, _model_step(constants, mu))
    gap = Measure("p-gap", p_gap_of, bound, "R(c*)/T", bound)
    return Experiment("Theorem 3", "tanh network", "L2, c = c*", runs, constants, (gap,))


def theorem3_kl(problem: Classifier, constants: Constants) -> Experiment:
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
    return Experiment("Theorem 3, KL", "tanh network", "KL, c = c*", runs, constants, (gap,))


def l2_mu(problem: Classifier, constants: Constants) -> float:
    """μ ≥ ‖f̂ − λ(p − q)‖₂ for uniform q: γ + λ sqrt(1 − 1/K)."""
    return constants.gamma + LAM * math.sqrt(1 - 1 / problem.num_domains)


def _model_step(constants: Constants, mu: float) -> Function:
    """η_w of Theorem 2."""
    return lambda T: schedules.theorem2_model_step(
        mu, constants.sigma, constants.smoothness, LAM, T
    )


def _symbols(problem: Classifier, constants: Constants) -> tuple[int, float, float, float]:
    """K, σ, γ, L."""
    return problem.num_domains, constants.sigma, constants.gamma, constants.smoothness
