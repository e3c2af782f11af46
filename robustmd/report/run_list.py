"""The runs behind a report: every run directory that was found, finished or not, and the values of
those that are in a table."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from robustmd.report.aggregate import Section, measured_as, seed_of
from robustmd.report.compute import total_seconds
from robustmd.report.estimate import seconds_text
from robustmd.report.messages import said
from robustmd.report.names import clean, is_many
from robustmd.report.quantities import Quantity, table_quantities
from robustmd.report.selection import Selected
from robustmd.report.settings_key import UNSET, differing, settings_of, short_key, shown_value
from robustmd.report.sheet import NOTHING, Cell, Field, Sheet, field, make_sheet
from robustmd.runs import files
from robustmd.runs.run import Problem, Run

LINKED = (files.CONFIG, files.METRICS, files.WEIGHTS, files.SUMMARY, files.ENVIRONMENT, files.LOG)


@dataclass(frozen=True)
class RunEntry:
    """One run directory. `path` is relative to the outputs folder; `differences` are (key, value)
    of the settings that are not the same in all rows of its table; `reason` says why it is left
    out, "" where it is not."""

    path: str
    data: str
    label: str
    seed: int | None
    status: str
    reason: str
    seconds: float | None
    device: str
    differences: tuple[tuple[str, str], ...]


def section_entries(section: Section, others: Iterable[Problem] = ()) -> tuple[RunEntry, ...]:
    """Those on one table's domains, by row and seed, those without a row at the end.

    Args:
        section: the table's runs.
        others: more that are left out of it, such as runs that are there twice.
    """
    keys = differing(group.settings for group in section.groups)
    found = [_entry(run, group.label, keys, None) for group in section.groups for run in group.runs]
    labels = {p.path: group.label for group in section.groups for p in group.unfinished}
    for problem in (*section.unfinished, *others):
        root = section.groups[0].runs[0].root
        found.append(left_out_entry(problem, root, keys, labels.get(problem.path)))
    return tuple(found)


def left_out_entry(
    problem: Problem, outputs: Path, keys: Iterable[str] = (), label: str | None = None
) -> RunEntry:
    """A run that is in no table, with what is known of it."""
    if problem.run is not None:
        return _entry(problem.run, label or problem.run.label, keys, problem.reason)
    reason, seed = clean(problem.reason), seed_of(problem)
    path = clean(problem.path.relative_to(outputs).as_posix())
    return RunEntry(path, "", clean(label or ""), seed, "unknown", reason, None, "", ())


def _entry(run: Run, label: str, keys: Iterable[str], reason: str | None) -> RunEntry:
    settings = settings_of(run)
    differences = tuple(
        (clean(short_key(key)), clean(shown_value(settings.get(key, UNSET), key))) for key in keys
    )
    return RunEntry(
        path=clean(run.place),
        data=clean(run.data),
        label=clean(label),
        seed=run.seed,
        status=clean(run.status),
        reason=clean(reason or ""),
        seconds=total_seconds(run) if run.seconds else None,
        device=clean(run.device),
        differences=differences,
    )


def entries_sheet(found: Iterable[RunEntry], outputs: Path, out: Path, name: str) -> Sheet:
    """A row a run directory, with links to its files, relative to the page in `out`."""

    def linked(one: RunEntry) -> Cell:
        return Cell(one.path, links=_links(outputs / one.path, out))

    fields = [
        field("run", lambda one: one.label or NOTHING),
        field("seed", lambda one: one.seed),
        field("status", lambda one: one.status),
        field("seconds", _seconds, "seconds", kind="number"),
        field("device", lambda one: one.device or NOTHING),
        field("settings that differ", _differences),
        field("files", linked, kind="code"),
        field("why", lambda one: one.reason, kind="long"),
    ]
    return make_sheet(name, found, fields)


def _seconds(one: RunEntry) -> Cell:
    return Cell(NOTHING if one.seconds is None else seconds_text(one.seconds), (one.seconds,))


def _differences(one: RunEntry) -> str:
    return ", ".join(f"{key}={value}" for key, value in one.differences) or NOTHING


def _links(folder: Path, out: Path) -> tuple[tuple[str, str], ...]:
    """To those files of a run that are there; none where the page cannot reach them."""
    try:
        there = Path(os.path.relpath(folder, out.resolve())).as_posix()
    except ValueError:  # another drive
        return ()
    names = (name for name in LINKED if (folder / name).is_file())
    return tuple((name.partition(".")[0], f"{there}/{name}") for name in names)


@dataclass(frozen=True)
class _Line:
    """One run in one row of the table."""

    label: str
    selected: Selected
    quantities: tuple[Quantity, ...]

    @property
    def split(self) -> str:
        """Of the last column: the test set, or that of the averaged model."""
        return self.quantities[-1].split

    @property
    def iterations(self) -> str:
        """Those whose measurements the values are of."""
        return " ".join(map(str, self.selected.iterations(self.split)))


def runs_sheet(section: Section) -> Sheet:
    """For a CSV file, from a mean back to metrics.csv: one line a run, the values that the mean is
    of, and the iterations whose measurements they are."""
    columns = table_quantities(section.domains, section.runs)

    def value(place: int) -> Field:
        name = columns[place].name
        return field(None, lambda one: one.quantities[place].of(one.selected), name)

    worst = field(None, lambda one: one.selected.worst_domain(one.split), "worst_domain")
    fields = [
        field(None, lambda one: one.selected.run.place, "path"),
        field(None, lambda one: one.label, "method"),
        field(None, lambda one: one.selected.seed, "seed"),
        field(None, lambda one: one.iterations, "iterations"),
        *map(value, range(len(columns))),
        *([worst] if is_many(section.domains) else []),
        field(None, lambda one: "; ".join(said(one.selected.run, "warnings")), "warnings"),
    ]
    return make_sheet(f"runs of {section.data}", _lines(section, columns), fields)


def _lines(section: Section, columns: Sequence[Quantity]) -> Iterator[_Line]:
    for group in section.groups:
        for label, quantities in measured_as(group, columns):
            for selected in group.selected:
                yield _Line(label, selected, quantities)
