"""The whole study: runs, checks, and the files of the report."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from robustmd.studies.files import Contents, images, make_folder, write_files
from robustmd.studies.parallel import one_thread, side_by_side
from robustmd.studies.theory import figures, regret_curve, table
from robustmd.studies.theory.experiments import Experiment, experiments
from robustmd.studies.theory.regret_curve import RegretCurve
from robustmd.studies.theory.results import Result, Row, rows_of
from robustmd.studies.theory.runs import Outcome

HORIZONS = (1_000, 3_162, 10_000, 31_623, 100_000)  # two decades
QUICK_HORIZONS = (100, 316, 1_000)


@dataclass(frozen=True)
class Study:
    """What was run and what came out."""

    curve: RegretCurve
    results: tuple[Result, ...]
    rows: tuple[Row, ...]

    def regret_violations(self) -> list[str]:
        """A line for every run whose regret exceeds its bound; there must be none."""
        return [line for result in self.results for line in result.regret_violations()]

    def regret_checks(self) -> int:
        """How many runs were checked."""
        return sum(result.regret_checks() for result in self.results)

    def broken_assumptions(self) -> list[str]:
        """A line for every constant that a run exceeded."""
        return [line for result in self.results for line in result.broken_assumptions()]


def write_study(
    out: Path,
    seeds: Sequence[int],
    *,
    quick: bool = False,
    workers: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> Study:
    """Runs everything and writes `<out>/theory/`: regret_bound.{png,pdf,csv}, convergence.{png,pdf,
    md,tex,csv} and runs.csv.

    Args:
        out: folder of the report; made where it is not there.
        seeds: ≥ 2 of them, for the intervals.
        quick: shorter runs.
        workers: processes, ≥ 1.
        say: told of each experiment as it ends.

    Raises:
        UserError: `out` cannot be written.
    """
    folder = make_folder(out, "theory")  # before the work
    results, rows = [], []
    with one_thread():
        for result in run_all(QUICK_HORIZONS if quick else HORIZONS, seeds, workers):
            found = rows_of(result)
            results.append(result)
            rows.extend(found)
            for row in found:
                say(_line(row))
    study = Study(RegretCurve(), tuple(results), tuple(rows))
    write_files(folder, _contents(study))
    return study


def run_all(horizons: Sequence[int], seeds: Sequence[int], workers: int) -> Iterator[Result]:
    """Every experiment's runs, in order.

    An experiment cannot travel between processes, for it holds functions. Each process makes all
    of them anew, alike, and is told which to run.
    """
    orders = [(i, tuple(horizons), tuple(seeds)) for i in range(len(_experiments()))]
    outcomes = side_by_side(_run, orders, workers)
    for experiment, found in zip(_experiments(), outcomes, strict=True):
        yield Result(experiment, tuple(seeds), found)


@cache
def _experiments() -> list[Experiment]:
    return experiments()


def _run(index: int, horizons: Sequence[int], seeds: Sequence[int]) -> list[list[Outcome]]:
    return _experiments()[index].runs.run(horizons, seeds)


def _contents(study: Study) -> Contents:
    return {
        "regret_bound.csv": regret_curve.to_csv(study.curve),
        **images("regret_bound", regret_curve.draw(study.curve)),
        "convergence.md": table.to_markdown(study.rows),
        "convergence.tex": table.to_latex(study.rows),
        "convergence.csv": table.to_csv(study.rows),
        **images("convergence", figures.draw(study.rows)),
        "runs.csv": table.runs_csv(study.results, study.rows),
    }


def _line(row: Row) -> str:
    rate = "–" if row.rate_slope is None else f"{row.rate_slope:.3f}"
    slope = f"{row.slope.value:.3f} [{row.slope.low:.3f}, {row.slope.high:.3f}]"
    return f"{row.result.title}, {row.measure.name}: slope {slope}, rate {rate}: {row.verdict}"
