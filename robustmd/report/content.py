"""What a report says: all its numbers, before there is a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from robustmd.errors import UserError
from robustmd.report import domains_table, run_list
from robustmd.report.aggregate import Section, sections
from robustmd.report.estimate import SpreadKind
from robustmd.report.fair import Fair, fair, fair_runs_sheet
from robustmd.report.figures import FigureData
from robustmd.report.front import Front, front, front_sheet
from robustmd.report.missing import Missing, missing_runs, missing_sheet
from robustmd.report.names import clean
from robustmd.report.paired import Comparison, comparisons, paired_sheet
from robustmd.report.regret import regret_sheet, regrets
from robustmd.report.selection import Selection
from robustmd.report.sheet import Sheet, field, make_sheet
from robustmd.report.table import Table, build_table
from robustmd.runs.reader import Collection, collect
from robustmd.runs.run import Problem, Run

LEFT_OUT = {
    "run": "run left out",
    "measurement": "measurement left out",
    "directory": "passed over",
    "remark": "remark",
}


@dataclass(frozen=True)
class SectionReport:
    """What was made of one data set. `entries` are all its run directories; `fair` and `front` are
    there where the runs are a fair protocol or a static front."""

    section: Section
    table: Table
    comparisons: tuple[Comparison, ...]
    regrets: pd.DataFrame
    compute: run_list.ComputeRows
    missing: tuple[Missing, ...]
    entries: tuple[run_list.RunEntry, ...]
    fair: Fair | None = None
    front: Front | None = None
    further: Sheet | None = None

    @cached_property
    def recorded(self) -> FigureData:
        """What its runs recorded over their iterations, read once."""
        return FigureData(self)

    @property
    def parts(self) -> Mapping[str, Sequence[Sheet]]:
        """{title: the tables below it}: what every page and the terminal have after the results."""
        paired, regret = self._paired, self._regret
        found = {
            f"Paired differences to {self.section.baseline}": [paired] if paired else [],
            "The fair protocol": self.fair.sheets if self.fair else [],
            "Missing": [missing_sheet(self.missing)] if self.missing else [],
            "Further metrics": [self.further] if self.further else [],
            "Regret of the adversary": [regret] if regret else [],
            "Compute": [run_list.compute_sheet(self.compute)],
        }
        return {title: sheets for title, sheets in found.items() if sheets}

    @cached_property
    def sheets(self) -> Mapping[str, Sequence[Sheet]]:
        """{file in the section's folder: the tables in it}."""
        found = {
            **table_files(self.table),
            "runs.csv": [run_list.runs_sheet(self.section)],
            "compute.csv": [run_list.compute_sheet(self.compute)],
            **_in("paired", "md csv", self._paired),
            **_in("regret", "md csv", self._regret),
            **_in("metrics", "md tex csv", self.further),
        }
        if self.table.is_many:
            found["domains.csv"] = [domains_table.domains_sheet(self.section)]
        if self.fair is not None:
            found["fair.md"] = self.fair.sheets
            found["fair.tex"] = self.fair.sheets[:2]
            found["fair.csv"] = self.fair.sheets[:1]
            found["fair_runs.csv"] = [fair_runs_sheet(self.fair)]
            found["fair_paired.csv"] = [self.fair.paired]
        if self.front is not None:
            found["static_front.csv"] = [front_sheet(self.front)]
        return found

    @property
    def _paired(self) -> Sheet | None:
        return paired_sheet(self.comparisons, self.section) if self.comparisons else None

    @property
    def _regret(self) -> Sheet | None:
        return None if self.regrets.empty else regret_sheet(self.regrets, self.section)


@dataclass(frozen=True)
class Report:
    """All of it. `outputs` is resolved, `problems` are in the order of their paths; `files` are
    those of a report that was written, README.md and index.html first."""

    outputs: Path
    out: Path
    sections: tuple[SectionReport, ...]
    leave_one_out: tuple[domains_table.LeaveOneOut, ...]
    problems: tuple[Problem, ...]
    files: tuple[Path, ...] = ()

    @property
    def page(self) -> Path:
        return self.out / "README.md"

    @property
    def html(self) -> Path:
        return self.out / "index.html"

    @property
    def left_out(self) -> Sheet:
        """What is in no table, and why."""
        fields = [
            field("path", lambda one: one.path.relative_to(self.outputs).as_posix()),
            field("", lambda one: LEFT_OUT[one.scope]),
            field("reason", lambda one: one.reason, kind="long"),
        ]
        return make_sheet("left out", self.problems, fields)


def table_files(table: Table) -> dict[str, Sequence[Sheet]]:
    """{file: the table}, in every format."""
    return _in("table", "md tex csv", table.sheet)


def _in(name: str, formats: str, sheet: Sheet | None) -> dict[str, Sequence[Sheet]]:
    return {f"{name}.{kind}": [sheet] for kind in formats.split()} if sheet else {}


def make_report(
    outputs: Path,
    out: Path,
    data: str | None,
    experiment: str | None = None,
    *,
    selection: Selection,
    spread: SpreadKind,
    baseline: str | None = None,
) -> Report:
    """All numbers of a report; writes nothing. Raises `UserError` without a finished run, or
    without one of `baseline`."""

    def is_asked(run: Run | None) -> bool:
        is_other = run is not None and (
            data not in (None, run.data) or experiment not in (None, run.experiment)
        )
        return not is_other

    collection = collect(outputs)
    chosen = [*filter(is_asked, collection.runs)]
    unfinished = [problem for problem in collection.problems if is_asked(problem.run)]
    found, left_out = sections(chosen, selection, unfinished)
    if not found:
        raise UserError(_nothing(collection, left_out, outputs, data, experiment))
    there = sorted({clean(group.method) for section in found for group in section.groups})
    if baseline is not None and clean(baseline) not in there:
        raise UserError(
            f"--baseline {clean(baseline)}: no finished run of it; there are runs of: "
            f"{', '.join(there)}"
        )
    found = tuple(replace(section, asked=baseline, spread=spread) for section in found)
    problems = tuple(sorted((*unfinished, *left_out), key=lambda one: one.path))
    made = tuple(map(report_on, found))
    return Report(collection.outputs, out, made, domains_table.leave_one_out(found), problems)


def report_on(section: Section) -> SectionReport:
    """All numbers of one data set."""
    return SectionReport(
        section,
        build_table(section),
        comparisons(section),
        regrets(section),
        run_list.compute_rows(section),
        missing_runs(section),
        run_list.section_entries(section),
        fair(section),
        front(section),
        domains_table.further_sheet(section),
    )


def _nothing(
    collection: Collection,
    left_out: Sequence[Problem],
    outputs: Path,
    data: str | None,
    experiment: str | None,
) -> str:
    """Why there is no report."""
    if collection.runs and not left_out:
        asked = {"--data": data, "--experiment": experiment}
        said = " ".join(f"{flag} {name}" for flag, name in asked.items() if name is not None)
        there = {
            f"{run.data} ({run.experiment})" if run.experiment else run.data
            for run in collection.runs
        }
        names = ", ".join(sorted(map(clean, there)))
        return f"{said}: {outputs} has no finished run of it; there are runs of: {names}"
    problems = [*left_out, *collection.problems]
    found = "no runs in it"
    if problems:
        where = problems[0].path.relative_to(collection.outputs).as_posix()
        found = (
            f"no finished run that the report can take among the {len(problems)} directories "
            f"found (first: {clean(where)}: {clean(problems[0].reason)})"
        )
    return f"{outputs}: {found}; make some with `robustmd train -m method=even,opt seed=0,1`"
