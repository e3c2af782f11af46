"""What a report is made of: numbers first, files later."""

from dataclasses import dataclass
from pathlib import Path

from robustmd.report.aggregate import Section
from robustmd.report.compute import ComputeRow
from robustmd.report.entries import RunEntry
from robustmd.report.estimate import SpreadKind
from robustmd.report.fair import Fair
from robustmd.report.front import Front
from robustmd.report.leave_one_out import LeaveOneOut
from robustmd.report.missing import Missing
from robustmd.report.paired import Comparison
from robustmd.report.regret import RegretRow
from robustmd.report.selection import Selection
from robustmd.report.table import Table
from robustmd.runs.run import Problem


@dataclass(frozen=True)
class DrawnFile:
    """One figure of a section, as it lies in the report: <folder>/<name>.png and .pdf. `alt` is
    what someone who cannot see it should know."""

    name: str
    title: str
    caption: str
    png: bytes
    alt: str = ""


@dataclass(frozen=True)
class SectionFiles:
    """What lies in a section's folder: the names of its tables, and its figures."""

    tables: tuple[str, ...]
    figures: tuple[DrawnFile, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of every file."""
        drawn = (f"{one.name}.{kind}" for one in self.figures for kind in ("png", "pdf"))
        return (*self.tables, *drawn)


@dataclass(frozen=True)
class SectionReport:
    """What was made of one data set. `entries` are all its run directories; `fair` and `front` are
    there where the runs are a fair protocol or a static front."""

    section: Section
    table: Table
    comparisons: tuple[Comparison, ...]
    regrets: tuple[RegretRow, ...]
    compute: tuple[ComputeRow, ...]
    missing: tuple[Missing, ...]
    entries: tuple[RunEntry, ...]
    fair: Fair | None = None
    front: Front | None = None


@dataclass(frozen=True)
class Report:
    """All of it. `outputs` is resolved, `problems` are in the order of their paths, `entries` every
    run directory: those of the sections, then those that are in none."""

    outputs: Path
    out: Path
    selection: Selection
    spread: SpreadKind
    sections: tuple[SectionReport, ...]
    leave_one_out: tuple[LeaveOneOut, ...]
    problems: tuple[Problem, ...]
    entries: tuple[RunEntry, ...]
