"""The page that ties a report together: README.md in the report's folder."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from robustmd.report import curves
from robustmd.report.aggregate import Section
from robustmd.report.messages import messages
from robustmd.report.names import markdown
from robustmd.report.paired import Comparison, paired_markdown
from robustmd.report.regret import RegretRow, regret_markdown
from robustmd.report.settings_key import UNSET, Settings, differing
from robustmd.report.table import Table, to_markdown
from robustmd.runs.run import Problem

LEFT_OUT = {
    "run": "run left out",
    "measurement": "measurement left out",
    "directory": "passed over",
    "remark": "remark",
}


def sentence(one: Comparison) -> str:
    """ "opt − even, worst training loss: −0.512 nats [−0.66, −0.36], n = 5: better"."""
    interval = "no interval" if one.difference.interval is None else one.interval_text
    numbers = f"{one.mean_text} {one.unit} {interval}, n = {one.difference.n}"
    return f"{one.method} − {one.reference}, {one.what}: {numbers}: {one.word}"


def section_markdown(
    section: Section,
    table: Table,
    compared: Sequence[Comparison],
    regrets: Sequence[RegretRow],
) -> str:
    """One data set: training, table, differences, curve, regret, files, what is missing."""
    name, folder = markdown(section.data), section.folder
    parts = [f"## {name}: {markdown(', '.join(section.domains))}\n", _protocol(section)]
    parts.append(to_markdown(table))
    if compared:
        parts.append("### Paired differences to even\n")
        parts.append(paired_markdown(compared))
    else:
        parts.append(
            "No paired differences: they need even and another mixture on the same data, trained "
            "in the same way, with a seed in common "
            f"(`robustmd train -m data={folder} method=even,opt seed=0,1,2`).\n"
        )
    parts.append("### Worst-case training loss\n")
    parts.append(f"![worst-case training loss]({folder}/{curves.NAME}.png)\n")
    parts.append(
        f"Largest training loss over the domains after every measured iteration; {curves.BAND}. "
        "Measurements before the last may take a fixed random part of the training set "
        "(`examples` in metrics.csv says how many).\n"
    )
    if regrets:
        parts += ["### Regret of the adversary\n", regret_markdown(regrets)]
    names = section_files(bool(compared), bool(regrets))
    links = [f"[{path}]({folder}/{path})" for path in names]
    parts.append(f"Files: {', '.join(links)}; runs.csv leads from every number to its run.\n")
    parts += [_bullets("Seeds without a finished run", _missing(section))]
    parts += [_bullets("Notes of these runs", _notes(section))]
    return "\n".join(part for part in parts if part)


def section_files(compared: bool, regrets: bool) -> list[str]:
    """Names of the files beside the page, in a data set's folder."""
    tables = ["table.md", "table.tex", "table.csv", "runs.csv"]
    paired = ["paired.md", "paired.csv"] if compared else []
    regret = ["regret.md", "regret.csv"] if regrets else []
    return [*tables, *paired, *regret, f"{curves.NAME}.png", f"{curves.NAME}.pdf"]


def left_out_markdown(problems: Sequence[Problem], outputs: Path) -> str:
    """Everything found that is in no table, with the reason and, where recorded, the command."""
    if not problems:
        return "## Left out\n\nNothing: every directory found is a finished run.\n"
    lines = ["## Left out\n", "| path | | reason | command |", "| --- | --- | --- | --- |"]
    for problem in problems:
        path = markdown(relative(problem.path, outputs))
        command = problem.run.command if problem.scope == "run" and problem.run else None
        cells = [path, LEFT_OUT[problem.scope], markdown(problem.reason), markdown(command or "")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def relative(path: Path, outputs: Path) -> str:
    """A path as the list shows it: below the outputs folder."""
    return path.relative_to(outputs).as_posix()


def _protocol(section: Section) -> str:
    """The settings that all rows share."""
    every = [group.settings for group in section.groups]
    varying = set(differing(every))
    first: Settings = every[0]
    shared = [
        f"{_setting(key)} {_shown(first[key])}"
        for key in first
        if key.startswith(("training.", "backbone.")) and key not in varying
    ]
    devices = Counter(str(run.environment.get("device", UNSET)) for run in section.runs)
    where = ", ".join(
        f"{device} ({n} run{'s' if n > 1 else ''})" for device, n in sorted(devices.items())
    )
    return (
        markdown(f"In all rows: {', '.join(shared) or 'nothing shared'}. Device: {where}.") + "\n"
    )


def _setting(key: str) -> str:
    return "backbone" if key == "backbone.name" else key.partition(".")[2]


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _missing(section: Section) -> list[str]:
    return [
        f"{group.label}: seed {', '.join(map(str, seeds))}"
        for group, seeds in section.missing_seeds()
    ]


def _notes(section: Section) -> list[str]:
    """What runs noted, each once, with how many of each row did."""
    return [
        f"{group.label}: {line}"
        for group in section.groups
        for line in messages(group.runs, "notes")
    ]


def _bullets(title: str, lines: Iterable[str]) -> str:
    items = [f"- {markdown(line)}" for line in lines]
    return "\n".join([f"{title}:\n", *items]) + "\n" if items else ""
