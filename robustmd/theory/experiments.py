"""The study's experiments: method and problem, what is measured, what is proved of it."""

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
from robustmd.theory.classifiers import Classifier, Logistic, TanhNetwork
from robustmd.theory.constants import Constants, estimate_constants
from robustmd.theory.domains import synthetic_domains
from robustmd.theory.lanes import Runs
from robustmd.theory.parabolas import Parabolas
from robustmd.theory.saddle import duality_gap
from robustmd.theory.tally import Outcome

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
    """

    name: str
    value: Callable[[Outcome], float]
    rate: Function | None
    rate_name: str
    bound: Function | None


@dataclass(frozen=True)
class Experiment:
    """Runs, and the measures taken of them.

    Attributes:
        result: of the paper, e.g. "Theorem 1".
        problem_name: "logistic regression", "tanh network" or "two parabolas".
        adversary_name: the rule for p.
        runs: method and problem.
        constants: what the step sizes assume; None: known in closed form.
        measures: one row of the table each.
    """

    result: str
    problem_name: str
    adversary_name: str
    runs: Runs
    constants: Constants | None
    measures: tuple[Measure, ...]


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


def convex_problem() -> Logistic:
    """3 domains of 20 examples, 2 features, 2 classes; 2 domains are in play at the saddle."""
    return Logistic(synthetic_domains(3, seed=3), batch_size=10, ridge=0.1)


def smooth_problem() -> TanhNetwork:
    """2 domains that disagree, 3 hidden units; 17 weights."""
    domains = synthetic_domains(2, seed=6, disagreement=1.0, separation=1.5)
    return TanhNetwork(domains, batch_size=5, ridge=0.1, hidden=3)


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


def theorem4(problem: Classifier, constants: Constants) -> Experiment:
    """Best response to the full-data losses, with L2: F is smooth."""
    K, sigma, gamma, L = _symbols(problem, constants)
    smoothness = schedules.theorem4_smoothness(L, constants.jacobian, LAM)
    measure = _theorem4_measure(gamma, sigma, smoothness)
    runs = Runs(
        problem,
        lambda T: BestResponse(K, L2(), LAM, every=1),
        lambda T: schedules.theorem4_model_step(sigma, smoothness, T),
    )
    name = "best response, L2"
    return Experiment("Theorem 4, regularised", "tanh network", name, runs, constants, (measure,))


def theorem4_regularised_parabolas() -> Experiment:
    """The counterexample's losses under the regularised F, where the theorem holds."""
    problem = Parabolas()
    smoothness = schedules.theorem4_smoothness(problem.smoothness, problem.jacobian, LAM)
    runs = Runs(
        problem,
        lambda T: BestResponse(2, L2(), LAM, every=1),
        lambda T: schedules.theorem4_model_step(problem.sigma, smoothness, T),
    )
    measure = _theorem4_measure(4.0, problem.sigma, smoothness)  # F(w₁) ≤ (1 + |w₁|)² ≤ 4
    name = "best response, L2"
    return Experiment("Theorem 4, regularised", "two parabolas", name, runs, None, (measure,))


def theorem4_as_printed() -> Experiment:
    """Without the regularizer, where it does not."""
    problem = Parabolas()
    runs = Runs(
        problem,
        lambda T: BestResponse(2, None, every=1),
        lambda T: schedules.theorem4_model_step(problem.sigma, problem.smoothness, T),
    )
    measure = Measure("‖∇F‖²", gradient_of, None, "none (printed: T^(-1/2))", None)
    name = "best response"
    return Experiment("Theorem 4, as printed", "two parabolas", name, runs, None, (measure,))


def l2_mu(problem: Classifier, constants: Constants) -> float:
    """μ ≥ ‖f̂ − λ(p − q)‖₂ for uniform q: γ + λ sqrt(1 − 1/K)."""
    return constants.gamma + LAM * math.sqrt(1 - 1 / problem.num_domains)


def _model_step(constants: Constants, mu: float) -> Function:
    """η_w of Theorem 2."""
    return lambda T: schedules.theorem2_model_step(
        mu, constants.sigma, constants.smoothness, LAM, T
    )


def _theorem4_measure(start: float, sigma: float, smoothness: float) -> Measure:
    """‖∇F‖² and its bound at ξ_t = 0: (F(W₁) + 1) σ sqrt(L_F/2T), F(W₁) ≤ start."""

    def bound(T: int) -> float:
        return (start + 1) * sigma * math.sqrt(smoothness / (2 * T))

    return Measure("‖∇F‖²", gradient_of, lambda T: T**-0.5, "T^(-1/2)", bound)


def _symbols(problem: Classifier, constants: Constants) -> tuple[int, float, float, float]:
    """K, σ, γ, L."""
    return problem.num_domains, constants.sigma, constants.gamma, constants.smoothness
