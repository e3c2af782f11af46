"""What the runs cost: seconds by method and device, unfinished and failed runs included."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from robustmd.report.aggregate import Section
from robustmd.report.names import clean
from robustmd.report.sheet import Cell, Field, Sheet, field, make_sheet
from robustmd.runs.run import Run

PARTS = ("training", "adversary", "data", "measurement")
Rows = Sequence[Any]  # see `compute_rows`


def compute_rows(section: Section, twice: Iterable[Run] = ()) -> Rows:
    """A row for each method and device, in the order of the table: `label`, `device`, how many are
    `finished` and `unfinished`, seconds of all, and of `PARTS`, where training includes adversary.
    `is_complete`: every run has written down its times; otherwise they are at least this.

    Args:
        section: one data set's runs.
        twice: finished runs that are left out of it because they are there twice.
    """
    lost = [problem.run for problem in section.unfinished if problem.run is not None]
    runs = {run.path: run for run in (*section.runs, *twice, *lost)}.values()
    frame = pd.DataFrame([_facts(run) for run in runs])
    rows = frame.groupby(["label", "device"], sort=False)
    found = rows.sum().assign(is_complete=rows["is_complete"].all()).reset_index()
    return list(found.itertuples(index=False, name="ComputeRow"))


def _facts(run: Run) -> dict[str, object]:
    return {
        "label": clean(run.label),
        "device": clean(run.device),
        "runs": 1,
        "finished": int(bool(run.history)),
        "unfinished": int(not run.history),
        "seconds": total_seconds(run),
        **{part: run.seconds.get(part, 0.0) for part in PARTS},
        "is_complete": "total" in run.seconds,
    }


def total_seconds(run: Run) -> float:
    """From start to end; of a run that could not write it down, the parts that it did."""
    spent = run.seconds
    return spent.get("total", sum(v for part, v in spent.items() if part != "adversary"))


def compute_sheet(rows: Rows) -> Sheet:
    """A row a method and device."""

    def seconds(part: str) -> Field:
        def cell(row: Any) -> Cell:
            value = getattr(row, part)
            at_least = "≥ " if part == "seconds" and not row.is_complete else ""
            return Cell(f"{at_least}{value:.1f}", (value,))

        title = "total" if part == "seconds" else part
        return field(f"{title} [s]", cell, part, kind="number")

    fields = [
        field("method", lambda row: row.label, "method"),
        field("device", lambda row: row.device, "device"),
        field("finished", lambda row: row.finished, "finished", kind="number"),
        field("unfinished", lambda row: row.unfinished, "unfinished", kind="number"),
        *map(seconds, ("seconds", *PARTS)),
        field(None, lambda row: "yes" if row.is_complete else "no", "complete"),
    ]
    caption = (
        "Seconds over all runs, failed and unfinished ones included; training includes the "
        "adversary's part. ≥: not every run wrote its times down."
    )
    return make_sheet("compute", rows, fields, caption=caption)
