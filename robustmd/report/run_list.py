"""The runs behind a report: every run directory that was found, finished or not, what they cost,
and the values of those that are in a table."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from robustmd.report.aggregate import Section, measured_as, seed_of
from robustmd.report.estimate import seconds_text
from robustmd.report.missing import said
from robustmd.report.names import clean, is_many
from robustmd.report.quantities import table_quantities
from robustmd.report.sheet import NOTHING, Cell, Field, Sheet, csv_sheet, field, make_sheet
from robustmd.runs import files
from robustmd.runs.run import Run

PARTS = ("training", "adversary", "data", "measurement")
ComputeRows = Sequence[Any]  # see `compute_rows`
LINKED = (files.CONFIG, files.METRICS, files.WEIGHTS, files.SUMMARY, files.ENVIRONMENT, files.LOG)


class RunEntry(NamedTuple):
    """One run directory. `label` is its row, `reason` why it is in no table; `run` is None where
    it cannot be read."""

    path: Path
    label: str
    seed: int | None
    run: Run | None
    reason: str = ""

    @property
    def status(self) -> str:
        return self.run.status if self.run else "unknown"

    @property
    def seconds(self) -> Cell:
        if self.run is None or not self.run.seconds:
            return Cell(NOTHING, (None,))
        return Cell(seconds_text(total_seconds(self.run)), (total_seconds(self.run),))


def section_entries(section: Section) -> tuple[RunEntry, ...]:
    """Those on one table's domains, by row and seed, those that are in no row at the end."""
    labels = {p.path: group.label for group in section.groups for p in group.unfinished}
    found = [
        RunEntry(run.path, group.label, run.seed, run)
        for group in section.groups
        for run in group.runs
    ]
    for one in (*section.unfinished, *section.twice):
        label = labels.get(one.path) or (one.run.label if one.run else NOTHING)
        found.append(RunEntry(one.path, label, seed_of(one), one.run, one.reason))
    return tuple(found)


def entries_sheet(found: Iterable[RunEntry], outputs: Path, out: Path, name: str) -> Sheet:
    """One row for each run directory, with links to its files, relative to the page in `out`."""

    def linked(one: RunEntry) -> Cell:
        return Cell(one.path.relative_to(outputs).as_posix(), links=_links(one.path, out))

    entries = list(found)
    named = field("experiment", lambda one: one.run.experiment if one.run else NOTHING)
    fields = [
        field("run", lambda one: one.label),
        field("seed", lambda one: one.seed),
        *([named] if any(one.run and one.run.experiment for one in entries) else []),
        field("status", lambda one: one.status),
        field("seconds", lambda one: one.seconds, "seconds", kind="number"),
        field("device", lambda one: one.run.device if one.run else NOTHING),
        field("files", linked, kind="code"),
        field("why", lambda one: one.reason, kind="long"),
    ]
    return make_sheet(name, entries, fields)


def _links(folder: Path, out: Path) -> tuple[tuple[str, str], ...]:
    """To those files of a run that are there; none where the page cannot reach them."""
    try:
        there = Path(os.path.relpath(folder, out.resolve())).as_posix()
    except ValueError:  # another drive
        return ()
    names = (name for name in LINKED if (folder / name).is_file())
    return tuple((name.partition(".")[0], f"{there}/{name}") for name in names)


def runs_sheet(section: Section) -> Sheet:
    """For a CSV file, from a mean back to metrics.csv: one line for each run, the values that
    the mean is of, and the iterations whose measurements they are."""
    columns = table_quantities(section.domains, section.runs)
    rows: list[dict[str, object]] = []
    for group in section.groups:
        for label, quantities in measured_as(group, columns):
            split = quantities[-1].split  # the test set, or that of the averaged model
            for one in group.selected:
                row = {"path": one.run.place, "method": label, "seed": one.run.seed}
                row["iterations"] = " ".join(map(str, one.iterations(split)))
                row |= {c.name: own.of(one) for c, own in zip(columns, quantities, strict=True)}
                if is_many(section.domains):
                    row["worst_domain"] = one.worst_domain(split)
                rows.append(row | {"warnings": "; ".join(said(one.run, "warnings"))})
    return csv_sheet(f"runs of {section.data}", rows)


def compute_rows(section: Section) -> ComputeRows:
    """A row for each method and device, in the order of the table: `label`, `device`, how many are
    `finished` and `unfinished`, seconds of all, and of `PARTS`, where training includes adversary.
    `is_complete`: every run has written down its times; otherwise they are at least this.
    """
    beside = (problem.run for problem in (*section.twice, *section.unfinished))
    runs = (*section.runs, *filter(None, beside))
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


def compute_sheet(rows: ComputeRows) -> Sheet:
    """One row for each method and device."""

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
