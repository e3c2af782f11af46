"""Theorem 4: best responses to the losses on all data. Regularised, and as printed."""

import math

from robustmd.adversary import L2, BestResponse, schedules
from robustmd.theory.classifiers import Classifier
from robustmd.theory.constants import Constants
from robustmd.theory.experiment import LAM, Experiment, Measure, gradient_of
from robustmd.theory.lanes import Runs
from robustmd.theory.parabolas import Parabolas


def theorem4(problem: Classifier, constants: Constants) -> Experiment:
    """Best response to the full-data losses, with L2: F is smooth."""
    K, sigma = problem.num_domains, constants.sigma
    smoothness = schedules.theorem4_smoothness(constants.smoothness, constants.jacobian, LAM)
    measure = _measure(constants.gamma, sigma, smoothness)
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
    measure = _measure(4.0, problem.sigma, smoothness)  # F(w₁) ≤ (1 + |w₁|)² ≤ 4
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
    measure = Measure(
        "‖∇F‖²", gradient_of, None, "none (printed: T^(-1/2))", None, printed_rate=lambda T: T**-0.5
    )
    name = "best response"
    return Experiment("Theorem 4, as printed", "two parabolas", name, runs, None, (measure,))


def _measure(start: float, sigma: float, smoothness: float) -> Measure:
    """‖∇F‖² and its bound at ξ_t = 0: (F(W₁) + 1) σ sqrt(L_F/2T), F(W₁) ≤ start."""

    def bound(T: int) -> float:
        return (start + 1) * sigma * math.sqrt(smoothness / (2 * T))

    return Measure("‖∇F‖²", gradient_of, lambda T: T**-0.5, "T^(-1/2)", bound)
