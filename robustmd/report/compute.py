"""What the runs cost: seconds by method and device, unfinished and failed runs included."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from robustmd.report.aggregate import Section
from robustmd.report.names import clean, markdown
from robustmd.runs.run import Run

PARTS = ("training", "adversary", "data", "measurement")


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


def compute_markdown(rows: Sequence[ComputeRow]) -> str:
    """A pipe table under its caption."""
    lines = [
        "Seconds over all runs, failed and unfinished ones included; training includes the "
        "adversary's part. ≥: not every run wrote its times down.\n",
        "| method | device | finished | unfinished | total | training | adversary | data "
        "| measurement |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        at_least = "" if row.is_complete else "≥ "
        times = (row.training, row.adversary, row.data, row.measurement)
        names = [markdown(row.label), markdown(row.device), str(row.finished), str(row.unfinished)]
        cells = [*names, f"{at_least}{row.seconds:.1f}", *(f"{time:.1f}" for time in times)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def compute_csv(rows: Sequence[ComputeRow]) -> str:
    """The same with every digit."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["method", "device", "finished", "unfinished", "seconds", *PARTS, "complete"])
    for row in rows:
        times = (row.seconds, *(getattr(row, part) for part in PARTS))
        complete = "yes" if row.is_complete else "no"
        writer.writerow([row.label, row.device, row.finished, row.unfinished, *times, complete])
    return out.getvalue()
