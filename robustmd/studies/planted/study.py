"""The whole study: runs, checks, and the files of the report."""

from collections.abc import Callable, Sequence
from pathlib import Path

from robustmd.studies.files import Contents, images, make_folder, write_files
from robustmd.studies.parallel import side_by_side
from robustmd.studies.planted import figures, table
from robustmd.studies.planted.domains import Setting
from robustmd.studies.planted.factors import FACTORS, NOISE, settings_of
from robustmd.studies.planted.methods import Method, methods_compared
from robustmd.studies.planted.results import Results
from robustmd.studies.planted.runs import Cell, run_cells

ITERATIONS, QUICK_ITERATIONS = 1_000, 15
_LANES = 75  # cells a job: more would not fit the processor's cache, fewer wait for Python


def write_study(
    out: Path,
    seeds: Sequence[int],
    *,
    quick: bool = False,
    workers: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> Results:
    """Runs everything and writes `<out>/planted/`: suboptimality, excess and noise.{png,pdf},
    planted.{md,csv} and runs.csv.

    Args:
        out: folder of the report; made where it is not there.
        seeds: ≥ 2 of them, for the intervals.
        quick: few iterations, and the ends of each factor only.
        workers: processes, ≥ 1.
        say: told how far it is.

    Raises:
        UserError: `out` cannot be written.
    """
    folder = make_folder(out, "planted")  # before the work
    factors = tuple(factor.ends() for factor in FACTORS) if quick else FACTORS
    iterations = QUICK_ITERATIONS if quick else ITERATIONS
    methods, settings = methods_compared(), settings_of(factors)
    cells: list[Cell] = []
    jobs = _jobs(settings, seeds, methods, iterations)
    for some in side_by_side(run_cells, jobs, workers):
        cells.extend(some)
        say(f"{len(cells)} of {len(settings) * len(seeds)} draws done")
    cells.sort(key=lambda cell: (settings.index(cell.setting), cell.seed))
    results = Results(factors, tuple(seeds), methods, iterations, tuple(cells))
    write_files(folder, _contents(results))
    return results


Job = tuple[list[Setting], Sequence[int], Sequence[Method], int]  # what `run_cells` takes


def _jobs(
    settings: Sequence[Setting], seeds: Sequence[int], methods: Sequence[Method], iterations: int
) -> list[Job]:
    """Cells that train together: one number of domains, some seeds; the largest jobs first."""
    counts = dict.fromkeys(setting.num_domains for setting in settings)
    groups = [[one for one in settings if one.num_domains == K] for K in counts]
    jobs: list[Job] = []
    for alike in sorted(groups, key=len, reverse=True):
        size = max(1, _LANES // len(alike))
        for first in range(0, len(seeds), size):
            jobs.append((alike, seeds[first : first + size], methods, iterations))
    return jobs


def _contents(results: Results) -> Contents:
    noise = next(factor for factor in results.factors if factor.name == NOISE.name)
    return {
        "planted.md": table.to_markdown(results),
        "planted.csv": table.to_csv(results),
        "runs.csv": table.runs_csv(results),
        **images("suboptimality", figures.draw(results, "suboptimality")),
        **images("excess", figures.draw(results, "excess")),
        **images("noise", figures.draw_noise(results, noise)),
    }
