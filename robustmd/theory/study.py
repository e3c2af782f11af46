"""The whole study: runs, checks, and the files of the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from robustmd.errors import UserError
from robustmd.report.figures import image_bytes
from robustmd.theory import figures, regret_curve, table
from robustmd.theory.regret_curve import RegretCurve
from robustmd.theory.results import Result, Row, rows_of
from robustmd.theory.threads import one_thread
from robustmd.theory.workers import run_side_by_side

FOLDER = "theory"
HORIZONS = (1_000, 3_162, 10_000, 31_623, 100_000)  # two decades
QUICK_HORIZONS = (100, 316, 1_000)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Study:
    """What was run, what came out, and what was written."""

    curve: RegretCurve
    results: tuple[Result, ...]
    rows: tuple[Row, ...]
    files: tuple[Path, ...]

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
    horizons: Sequence[int],
    *,
    workers: int = 1,
    say: Say = lambda line: None,
) -> Study:
    """Runs everything and writes `<out>/theory/`: regret_bound.{png,pdf,csv}, convergence.{png,pdf,
    md,tex,csv} and runs.csv.

    Args:
        out: folder of the report; made where it is not there.
        seeds: ≥ 2 of them, for the intervals.
        horizons: the T's, ≥ 2 of them.
        workers: processes, ≥ 1.
        say: told of each experiment as it ends.

    Raises:
        UserError: `out` cannot be written.
    """
    curve = RegretCurve()
    folder = out / FOLDER
    _make(folder)  # before the work
    results, rows = [], []
    with one_thread():
        for experiment, outcomes in run_side_by_side(horizons, seeds, workers):
            result = Result(experiment, tuple(seeds), outcomes)
            found = rows_of(result)
            results.append(result)
            rows.extend(found)
            for row in found:
                say(_line(row))
    contents = _contents(curve, results, rows)
    files = tuple(_write(folder / name, content) for name, content in contents.items())
    return Study(curve, tuple(results), tuple(rows), files)


def _contents(
    curve: RegretCurve, results: Sequence[Result], rows: Sequence[Row]
) -> dict[str, str | bytes]:
    """File name to content."""
    return {
        f"{regret_curve.NAME}.csv": regret_curve.to_csv(curve),
        **_images(regret_curve.NAME, regret_curve.draw(curve)),
        f"{table.NAME}.md": table.to_markdown(rows),
        f"{table.NAME}.tex": table.to_latex(rows),
        f"{table.NAME}.csv": table.to_csv(rows),
        **_images(table.NAME, figures.draw(rows)),
        "runs.csv": table.runs_csv(results, rows),
    }


def _line(row: Row) -> str:
    rate = "–" if row.rate_slope is None else f"{row.rate_slope:.3f}"
    slope = f"{row.slope.value:.3f} [{row.slope.low:.3f}, {row.slope.high:.3f}]"
    return f"{row.result.title}, {row.measure.name}: slope {slope}, rate {rate}: {row.verdict}"


def _images(name: str, figure: Figure) -> dict[str, str | bytes]:
    return {f"{name}.{kind}": image_bytes(figure, kind) for kind in ("png", "pdf")}


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {folder.parent}: cannot be written ({error.strerror})") from error


def _write(path: Path, content: str | bytes) -> Path:
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
    return path
