"""What is not there yet, and the command that would run it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from robustmd.report.aggregate import Group, Section, seed_of
from robustmd.report.names import clean
from robustmd.report.settings_key import FINGERPRINT, describe, differing, settings_of
from robustmd.report.sheet import Sheet, field, make_sheet
from robustmd.runs import rerun
from robustmd.runs.run import Problem, Run
from robustmd.runs.untrusted import Unreadable


@dataclass(frozen=True)
class Missing:
    """Seeds of a row that have no finished run, why, and the command that would run them."""

    label: str
    seeds: tuple[int, ...]
    reason: str
    command: str


def missing_runs(section: Section) -> tuple[Missing, ...]:
    """For every row: the seeds that some row on these domains has and this one lacks, in the order
    of the rows; then unfinished runs of configurations that have no row."""
    unfinished = [problem for problem in section.unfinished if not _is_finished(problem)]
    seen = {seed for group in section.groups for seed in group.seeds}
    seen |= {seed for problem in unfinished if (seed := seed_of(problem)) is not None}
    found = [one for group in section.groups for one in _of_group(group, sorted(seen))]
    with_row = {problem.path for group in section.groups for problem in group.unfinished}
    for problem in unfinished:
        if problem.path not in with_row and problem.run is not None:
            found.append(_again(_label(problem.run, section), problem, problem.run))
    return tuple(found)


def _label(run: Run, section: Section) -> str:
    """Of a run without a row: its method, and what sets it apart from the rows of it."""
    own, kind = settings_of(run), (run.method, run.domain)
    beside = [g.settings for g in section.groups if (g.method, g.domain) == kind]
    keys = [key for key in differing([own, *beside]) if key != FINGERPRINT]
    return f"{run.label} {describe(own, keys)}".strip()


def _of_group(group: Group, wanted: Sequence[int]) -> Iterator[Missing]:
    lost = {seed_of(one): one for one in group.unfinished if not _is_finished(one)}
    for seed, problem in sorted(lost.items(), key=lambda item: str(item[0])):
        if seed is not None and seed not in group.seeds:
            yield _again(group.label, problem, problem.run or group.runs[0])
    never = tuple(seed for seed in wanted if seed not in group.seeds and seed not in lost)
    if never:
        yield Missing(group.label, never, "not run", clean(command_for(group.runs[0], never)))


def _again(label: str, problem: Problem, run: Run) -> Missing:
    seed = seed_of(problem)
    seeds = (run.seed if seed is None else seed,)
    command = command_for(run, seeds, again=problem.status == "finished")
    return Missing(clean(label), seeds, clean(problem.reason), clean(command))


def _is_finished(problem: Problem) -> bool:
    """Left out by a rule of the report, with nothing wrong in it: no need to run it again."""
    return problem.run is not None and bool(problem.run.history)


def command_for(run: Run, seeds: Sequence[int], *, again: bool = False) -> str:
    """ "robustmd train -m data=digits method=opt seed=3,4", or why there is none.

    From the overrides that the run wrote down; where it wrote none, every setting of its
    config.yaml that can change a number is named. `again`: with force=true, for a run that says of
    itself that it is finished.
    """
    try:
        found = rerun.overrides(run.config, run.environment, seeds=seeds)
    except Unreadable as reason:
        return f"not known: {reason}"
    many = ["-m"] if len(seeds) > 1 else []
    return rerun.command([*many, *found, *(["force=true"] * again)])


def missing_sheet(found: Sequence[Missing]) -> Sheet:
    """A row a gap: which seeds of which row, why, and what would run them."""
    fields = [
        field("row", lambda one: one.label),
        field("seeds", lambda one: ", ".join(map(str, one.seeds))),
        field("reason", lambda one: one.reason, kind="long"),
        field("command", lambda one: one.command, kind="code"),
    ]
    return make_sheet("missing runs", found, fields)
