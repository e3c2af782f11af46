"""What must be known of a row beside its numbers: what its runs said of themselves, and which of
them are not there yet, with the command that would run them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from robustmd.report.aggregate import Group, Section, seed_of
from robustmd.report.names import clean, some_text
from robustmd.report.settings_key import FINGERPRINT, describe, differing, settings_of
from robustmd.report.sheet import Sheet, field, make_sheet
from robustmd.runs import rerun
from robustmd.runs.run import Problem, Run, constant_of
from robustmd.runs.untrusted import Unreadable

MOST = 50  # lines of a run: one that we made says fewer
Kind = Literal["warnings", "notes"]


def said(run: Run, kind: Kind) -> list[str]:
    """What one run said, each line once; of more than `MOST` lines the first, and a count."""
    listed = run.summary.get(kind)
    lines = list(dict.fromkeys(map(str, listed if isinstance(listed, list) else [])))
    more = len(lines) - MOST
    return lines if more <= 0 else [*lines[:MOST], f"and {more:,} more {kind}"]


def messages(runs: Sequence[Run], kind: Kind) -> tuple[str, ...]:
    """ "nearly all weight on svhn (3 of 5 runs)": each text once, in order of first appearance."""
    counts = Counter(line for run in runs for line in said(run, kind))
    return tuple(f"{line} ({count} of {_count(runs)})" for line, count in counts.items())


def _count(runs: Sequence[Run]) -> str:
    return f"{len(runs)} run{'s' if len(runs) > 1 else ''}"


def other_warnings(group: Group) -> tuple[str, ...]:
    """Of seeds that are not in the row, "seed 3 is not in it: diverged after 120 of 1000
    iterations", and of models that predict one class whatever they see."""
    lost = (
        f"seed {seed_of(problem)} is not in it: {problem.reason}" for problem in group.unfinished
    )
    tested = (constant_of(run.summary).get("test", ()) for run in group.runs)
    found = Counter(domain for domains in tested for domain in domains)
    where = [f"{domain} ({count} of {_count(group.runs)})" for domain, count in found.items()]
    constant = [f"predicts one class for every test image of {some_text(where)}"] if where else []
    return (*lost, *constant)


class Missing(NamedTuple):
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
    """One row for each gap: which seeds of which row, why, and what would run them."""
    fields = [
        field("row", lambda one: one.label),
        field("seeds", lambda one: ", ".join(map(str, one.seeds))),
        field("reason", lambda one: one.reason, kind="long"),
        field("command", lambda one: one.command, kind="code"),
    ]
    return make_sheet("missing runs", found, fields)
