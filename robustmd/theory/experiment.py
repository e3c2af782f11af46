"""What an experiment is: a method on a problem, what is measured, what is proved of it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from robustmd.theory.constants import Constants
from robustmd.theory.lanes import Runs
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
