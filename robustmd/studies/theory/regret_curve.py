"""The regret bound against the constant c: the paper's illustration of Corollary 1."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from robustmd.adversary.schedules import optimal_c, regret_bound
from robustmd.report.style import COLOURS, figure_style
from robustmd.studies.files import csv_text


@dataclass(frozen=True)
class RegretCurve:
    """R(c) = λc + (μ²/2λ) ln(T/c + 1) + μ²/2λ, with c* and the plain step's R(0) beside it.

    | symbol | attribute   | the paper's value |
    |--------|-------------|-------------------|
    | T      | total_steps | 1e6               |
    | μ      | mu          | 1e2               |
    | λ      | lam         | 1                 |
    """

    total_steps: int = 1_000_000
    mu: float = 100.0
    lam: float = 1.0

    @property
    def best_c(self) -> float:
        """c*."""
        return optimal_c(self.mu, self.lam, self.total_steps)

    @property
    def best(self) -> float:
        """R(c*)."""
        return self.at(self.best_c)

    @property
    def plain(self) -> float:
        """R(0) = (μ²/2λ)(ln T + 1), of the step 1/(λt)."""
        return self.at(0.0)

    def at(self, c: float) -> float:
        """R(c), c ≥ 0."""
        return regret_bound(c, self.mu, self.lam, self.total_steps)

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """c from 1 to 10⁵ on a log grid that holds c*, and R(c)."""
        c = np.sort(np.append(np.geomspace(1.0, 1e5, 200), self.best_c))
        return c, np.array([self.at(value) for value in c])

    def summary(self) -> str:
        """The four numbers in a line."""
        return (
            f"T = {self.total_steps:g}, μ = {self.mu:g}, λ = {self.lam:g}: c* = {self.best_c:.4f}, "
            f"R(c*) = {self.best:.3f}, plain step {self.plain:.3f}, "
            f"ratio {self.best / self.plain:.4f}"
        )


def to_csv(curve: RegretCurve) -> str:
    """Header `c,regret_bound,note`; the plain step is the row with c = 0."""
    rows: list[tuple[float, float, str]] = [(0, curve.plain, "plain step 1/(lam t)")]
    for c, bound in zip(*curve.points(), strict=True):
        rows.append((float(c), float(bound), "c*" if c == curve.best_c else ""))
    return csv_text(["c", "regret_bound", "note"], rows)


def draw(curve: RegretCurve) -> Figure:
    """R(c) on a log axis for c, c* marked, the plain step's level dashed."""
    black, blue, orange = COLOURS[:3]
    with figure_style():
        figure = Figure(figsize=(5.0, 3.4), layout="constrained")
        axis = figure.subplots()
        axis.plot(*curve.points(), color=blue, linewidth=1.8, label="step 1/(λ(t + c))")
        plain = f"plain step 1/(λt): {curve.plain:,.0f}"
        axis.axhline(curve.plain, color=black, linestyle="--", linewidth=1.2, label=plain)
        best = f"c* = {curve.best_c:,.0f}: {curve.best:,.0f} ({curve.best / curve.plain:.2f} of it)"
        axis.plot(
            curve.best_c, curve.best, "o", color=orange, markersize=7, label=best, linestyle="none"
        )
        axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.set_xlabel("constant c")
        axis.set_ylabel("bound on the regret after T steps")
        axis.set_title(f"T = {curve.total_steps:,}, μ = {curve.mu:g}, λ = {curve.lam:g}")
        axis.legend(loc="lower left")
    return figure
