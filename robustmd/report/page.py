"""The page that ties a report together: README.md in the report's folder."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from robustmd.report.aggregate import Section
from robustmd.report.compute import compute_markdown
from robustmd.report.domains_table import NAME as DOMAINS
from robustmd.report.fair_formats import fair_markdown
from robustmd.report.many import domains_text
from robustmd.report.missing import Missing
from robustmd.report.names import clean, markdown
from robustmd.report.paired import Comparison
from robustmd.report.paired_table import paired_markdown
from robustmd.report.regret import regret_markdown
from robustmd.report.result import DrawnFile, Report, SectionReport
from robustmd.report.settings_key import Settings, differing
from robustmd.report.table_formats import to_markdown
from robustmd.runs import rerun
from robustmd.runs.run import Problem
from robustmd.runs.untrusted import Unreadable

LEFT_OUT = {
    "run": "run left out",
    "measurement": "measurement left out",
    "directory": "passed over",
    "remark": "remark",
}


def sentence(one: Comparison) -> str:
    """ "opt − even, worst training loss: −0.512 nats [−0.66, −0.36], p = …, n = 9: better"."""
    interval = "no interval" if one.difference.interval is None else one.interval_text
    numbers = f"{one.mean_text} {one.unit} {interval}, {one.p_text}, n = {one.difference.n}"
    return f"{one.method} − {one.reference}, {one.what}: {numbers}: {one.said}"


def page_markdown(report: Report, images: Mapping[str, Sequence[DrawnFile]]) -> str:
    """The whole page. `images`: the figures of each section, by its folder."""
    each = [section_markdown(one, images.get(one.section.folder, ())) for one in report.sections]
    left_out = left_out_markdown(report.problems, report.outputs)
    apart = [
        f"## {markdown(table.data)}: leave one domain out\n\n{to_markdown(table)}"
        for table in report.leave_one_out
    ]
    return "\n".join(["# Report\n", *apart, *each, left_out])


def section_markdown(one: SectionReport, images: Sequence[DrawnFile]) -> str:
    """One data set: training, table, differences, figures, regret, compute, files, what is
    missing."""
    section = one.section
    name, folder = markdown(section.data), section.folder
    parts = [f"## {name}: {markdown(domains_text(section.domains))}\n", _protocol(section)]
    parts.append(to_markdown(one.table))
    if one.comparisons:
        parts.append(f"### Paired differences to {markdown(section.baseline)}\n")
        parts.append(paired_markdown(one.comparisons, one.table.selection))
    else:
        parts.append(
            f"No paired differences: they need {markdown(section.baseline)} and another mixture on "
            "the same data, trained in the same way, with a seed in common "
            f"(`{_pair_command(section)}`).\n"
        )
    if one.fair is not None:
        parts += ["### The fair protocol\n", fair_markdown(one.fair)]
    for image in images:
        parts.append(f"### {markdown(image.title)}\n")
        parts.append(f"![{markdown(image.alt or image.title)}]({folder}/{image.name}.png)\n")
        parts.append(f"{markdown(image.caption)}\n")
    if one.regrets:
        parts += ["### Regret of the adversary\n", regret_markdown(one.regrets)]
    parts += ["### Compute\n", compute_markdown(one.compute)]
    names = section_files(one, images)
    links = [f"[{path}]({folder}/{path})" for path in names]
    parts.append(f"Files: {', '.join(links)}; runs.csv leads from every number to its run.\n")
    parts.append(_missing(one.missing))
    return "\n".join(part for part in parts if part)


def section_files(one: SectionReport, images: Sequence[DrawnFile]) -> list[str]:
    """Names of the files beside the page, in a data set's folder."""
    tables = ["table.md", "table.tex", "table.csv", "runs.csv", "compute.csv"]
    tables += [DOMAINS] if one.table.is_many else []
    paired = ["paired.md", "paired.csv"] if one.comparisons else []
    regret = ["regret.md", "regret.csv"] if one.regrets else []
    fair = [f"fair.{kind}" for kind in ("md", "tex", "csv")] if one.fair is not None else []
    fair += ["fair_choices.csv", "fair_paired.csv"] if fair else []
    front = ["static_front.csv"] if one.front is not None else []
    figures = [f"{image.name}.{kind}" for image in images for kind in ("png", "pdf")]
    return [*tables, *paired, *regret, *fair, *front, *figures]


def left_out_markdown(problems: Sequence[Problem], outputs: Path) -> str:
    """Everything found that is in no table, with the reason."""
    if not problems:
        return "## Left out\n\nNothing: every directory found is a finished run.\n"
    lines = ["## Left out\n", "| path | | reason |", "| --- | --- | --- |"]
    for problem in problems:
        path = markdown(relative(problem.path, outputs))
        cells = [path, LEFT_OUT[problem.scope], markdown(problem.reason)]
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
    devices = Counter(run.device for run in section.runs)
    where = ", ".join(
        f"{device} ({n} run{'s' if n > 1 else ''})" for device, n in sorted(devices.items())
    )
    return (
        markdown(f"In all rows: {', '.join(shared) or 'nothing shared'}. Device: {where}.") + "\n"
    )


def _pair_command(section: Section) -> str:
    """What would train two methods on its domains; names are anybody's text, so checked."""
    unseen = [f"data.unseen={rerun.hydra_value(section.unseen)}"] if section.unseen else []
    named = [f"data={section.runs[0].data}", *unseen]
    try:
        found = rerun.overrides({}, {"overrides": named})
    except Unreadable as reason:
        return clean(f"not known: {reason}").replace("`", "?")
    command = rerun.command(["-m", *found, "method=even,opt", "seed=0,1,2"])
    return clean(command).replace("`", "?")


def _setting(key: str) -> str:
    return "backbone" if key == "backbone.name" else key.partition(".")[2]


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _missing(found: Sequence[Missing]) -> str:
    """What has no finished run yet, and what would run it."""
    if not found:
        return ""
    lines = ["### Missing\n", "| row | seeds | reason | command |", "| --- | --- | --- | --- |"]
    for one in found:
        seeds = ", ".join(map(str, one.seeds))
        cells = [one.label, seeds, one.reason, one.command]
        lines.append("| " + " | ".join(map(markdown, cells)) + " |")
    return "\n".join(lines) + "\n"
