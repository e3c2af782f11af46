"""Every run directory that was found, finished or not: the list behind a report."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from robustmd.report.aggregate import Section, seed_of
from robustmd.report.compute import total_seconds
from robustmd.report.names import clean
from robustmd.report.settings_key import UNSET, differing, settings_of, short_key, shown_value
from robustmd.runs.run import Problem, Run


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
        path=clean(run.path.relative_to(run.root).as_posix()),
        data=clean(run.data),
        label=clean(label),
        seed=run.seed,
        status=clean(run.status),
        reason=clean(reason or ""),
        seconds=total_seconds(run) if run.seconds else None,
        device=clean(run.device),
        differences=differences,
    )
