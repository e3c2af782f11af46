"""What the tables and figures ask of the cells: values over seeds, and what was chosen."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from robustmd.report.estimate import Estimate, estimate
from robustmd.studies.planted.domains import Setting
from robustmd.studies.planted.factors import Factor
from robustmd.studies.planted.methods import Method
from robustmd.studies.planted.runs import Cell

REFERENCE = "even"


@dataclass(frozen=True)
class Results:
    """All cells of a study."""

    factors: tuple[Factor, ...]
    seeds: tuple[int, ...]
    methods: tuple[Method, ...]
    iterations: int
    cells: tuple[Cell, ...]

    def of(self, setting: Setting) -> list[Cell]:
        """The setting's cells in the seeds' order."""
        by_seed = {cell.seed: cell for cell in self.cells if cell.setting == setting}
        return [by_seed[seed] for seed in self.seeds]

    def values(self, setting: Setting, method: str, measure: str) -> list[float]:
        """A measure of `Run`, of the chosen configuration, one value a seed."""
        return [getattr(cell.chosen(method), measure) for cell in self.of(setting)]

    def estimate(self, setting: Setting, method: str, measure: str) -> Estimate:
        """Its mean and standard deviation over seeds."""
        return estimate(self.values(setting, method, measure))

    def best(self, setting: Setting, method: str) -> Estimate:
        """The smallest suboptimality of all the method's configurations: chosen with hindsight."""
        return estimate(
            min(run.suboptimality for run in cell.runs if run.method == method)
            for cell in self.of(setting)
        )

    def seeds_below(self, setting: Setting, method: str, measure: str) -> int:
        """On how many seeds the method is below even, by more than the optimum's error."""
        own = np.array(self.values(setting, method, measure))
        reference = np.array(self.values(setting, REFERENCE, measure))
        return int((own < reference - 1e-9).sum())

    def optimum(self, setting: Setting, measure: str) -> Estimate:
        """The same of the optimum's model: `Cell.optimum_<measure>`."""
        return estimate(getattr(cell, f"optimum_{measure}") for cell in self.of(setting))

    def choices(self, method: str) -> Counter[str]:
        """How often each configuration was chosen, over all cells."""
        return Counter(cell.chosen(method).configuration for cell in self.cells)

    def violations(self) -> list[str]:
        """A line for every run below the optimum; there must be none."""
        return [line for cell in self.cells for line in cell.violations()]

    @property
    def largest_error(self) -> float:
        """The largest certificate gap."""
        return max(cell.error for cell in self.cells)

    @property
    def num_runs(self) -> int:
        return sum(len(cell.runs) for cell in self.cells)

    @property
    def diverged(self) -> list[tuple[str, str]]:
        """(method, configuration) of every run that diverged."""
        return [
            (run.method, run.configuration)
            for cell in self.cells
            for run in cell.runs
            if run.validation == float("inf")
        ]
