"""What the runs cost: seconds by method and device, unfinished and failed runs included."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from robustmd.report.aggregate import Section
from robustmd.report.names import clean
from robustmd.report.sheet import Cell, Sheet, field, make_sheet
from robustmd.runs.run import Run


@dataclass(frozen=True)
class ComputeRow:
    """All runs of one method on one device. Times in seconds, summed over the runs: `training`
    includes `adversary`; `seconds` is everything from start to end.

    `is_complete`: every run has written down its times; otherwise they are at least this.
    """

    label: str
    device: str
    finished: int
    unfinished: int
    seconds: float
    training: float
    adversary: float
    data: float
    measurement: float
    is_complete: bool

    @property
    def runs(self) -> int:
        return self.finished + self.unfinished


def compute_rows(section: Section, twice: Iterable[Run] = ()) -> tuple[ComputeRow, ...]:
    """A row for each method and device, in the order of the table.

    Args:
        section: one data set's runs.
        twice: finished runs that are left out of it because they are there twice.
    """
    lost = [problem.run for problem in section.unfinished if problem.run is not None]
    all_runs = {run.path: run for run in (*section.runs, *twice, *lost)}
    by_key: dict[tuple[str, str], list[Run]] = {}
    for run in all_runs.values():
        by_key.setdefault((run.label, run.device), []).append(run)
    return tuple(_row(label, device, runs) for (label, device), runs in by_key.items())


def _row(label: str, device: str, runs: Sequence[Run]) -> ComputeRow:
    finished = sum(bool(run.history) for run in runs)

    def spent(part: str) -> float:
        return sum(run.seconds.get(part, 0.0) for run in runs)

    return ComputeRow(
        label=clean(label),
        device=clean(device),
        finished=finished,
        unfinished=len(runs) - finished,
        seconds=sum(map(total_seconds, runs)),
        training=spent("training"),
        adversary=spent("adversary"),
        data=spent("data"),
        measurement=spent("measurement"),
        is_complete=all("total" in run.seconds for run in runs),
    )


def total_seconds(run: Run) -> float:
    """From start to end; of a run that could not write it down, the parts that it did."""
    spent = run.seconds
    return spent.get("total", sum(v for part, v in spent.items() if part != "adversary"))


def compute_sheet(rows: Sequence[ComputeRow]) -> Sheet:
    """A row a method and device."""
    fields = [
        field("method", lambda row: row.label, "method"),
        field("device", lambda row: row.device, "device"),
        field("finished", lambda row: row.finished, "finished", kind="number"),
        field("unfinished", lambda row: row.unfinished, "unfinished", kind="number"),
        field("total [s]", _total, "seconds", kind="number"),
        *(
            field(f"{part} [s]", partial(_spent, part=part), part, kind="number")
            for part in ("training", "adversary", "data", "measurement")
        ),
        field(None, lambda row: "yes" if row.is_complete else "no", "complete"),
    ]
    caption = (
        "Seconds over all runs, failed and unfinished ones included; training includes the "
        "adversary's part. ≥: not every run wrote its times down."
    )
    return make_sheet("compute", rows, fields, caption=caption)


def _total(row: ComputeRow) -> Cell:
    at_least = "" if row.is_complete else "≥ "
    return Cell(f"{at_least}{row.seconds:.1f}", (row.seconds,))


def _spent(row: ComputeRow, part: str) -> Cell:
    seconds = getattr(row, part)
    return Cell(f"{seconds:.1f}", (seconds,))
