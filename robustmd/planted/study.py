"""The whole study: runs, checks, and the files of the report."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from robustmd.errors import UserError
from robustmd.planted import figures, table
from robustmd.planted.factors import FACTORS, NOISE, Factor, settings_of
from robustmd.planted.methods import METHODS_COMPARED
from robustmd.planted.results import Results
from robustmd.planted.runs import Cell
from robustmd.planted.workers import run_side_by_side
from robustmd.report.figures import image_bytes

FOLDER = "planted"
ITERATIONS, QUICK_ITERATIONS = 1_000, 15
Say = Callable[[str], None]


def write_study(
    out: Path,
    seeds: Sequence[int],
    *,
    quick: bool = False,
    workers: int = 1,
    say: Say = lambda line: None,
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
    folder = out / FOLDER
    _make(folder)  # before the work
    factors = tuple(factor.ends() for factor in FACTORS) if quick else FACTORS
    iterations = QUICK_ITERATIONS if quick else ITERATIONS
    settings = settings_of(factors)
    cells: list[Cell] = []
    for some in run_side_by_side(settings, seeds, METHODS_COMPARED, iterations, workers):
        cells.extend(some)
        say(f"{len(cells)} of {len(settings) * len(seeds)} draws done")
    order = {setting: i for i, setting in enumerate(settings)}
    cells.sort(key=lambda cell: (order[cell.setting], cell.seed))
    results = Results(factors, tuple(seeds), METHODS_COMPARED, iterations, tuple(cells))
    for name, content in _contents(results).items():
        _write(folder / name, content)
    return results


def _contents(results: Results) -> dict[str, str | bytes]:
    """File name to content."""
    noise: Factor = next(factor for factor in results.factors if factor.name == NOISE.name)
    return {
        f"{table.NAME}.md": table.to_markdown(results),
        f"{table.NAME}.csv": table.to_csv(results),
        "runs.csv": table.runs_csv(results),
        **_images("suboptimality", figures.draw(results, "suboptimality")),
        **_images("excess", figures.draw(results, "excess")),
        **_images("noise", figures.draw_noise(results, noise)),
    }


def _images(name: str, figure: Figure) -> dict[str, str | bytes]:
    return {f"{name}.{kind}": image_bytes(figure, kind) for kind in ("png", "pdf")}


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {folder.parent}: cannot be written ({error.strerror})") from error


def _write(path: Path, content: str | bytes) -> None:
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
