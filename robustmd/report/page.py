"""The page that ties a report together: README.md in the report's folder."""

from collections import Counter
from collections.abc import Mapping

from robustmd.report.aggregate import Section
from robustmd.report.compute import compute_sheet
from robustmd.report.content import LEFT_OUT, Report, SectionFiles, relative
from robustmd.report.missing import missing_sheet
from robustmd.report.names import clean, domains_text
from robustmd.report.paired import paired_sheet
from robustmd.report.regret import regret_sheet
from robustmd.report.renderers import to_markdown
from robustmd.report.settings_key import Settings, differing
from robustmd.report.templating import markdown_templates
from robustmd.runs import rerun
from robustmd.runs.untrusted import Unreadable


def page_markdown(report: Report, files: Mapping[str, SectionFiles]) -> str:
    """The whole page. `files`: those of each section, by its folder."""
    return _TEMPLATES.get_template("README.md.j2").render(report=report, files=files)


def training_words(section: Section) -> str:
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
    return f"In all rows: {', '.join(shared) or 'nothing shared'}. Device: {where}."


def _setting(key: str) -> str:
    return "backbone" if key == "backbone.name" else key.partition(".")[2]


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def pair_command(section: Section) -> str:
    """What would train two methods on its domains; names are anybody's text, so checked."""
    unseen = [f"data.unseen={rerun.hydra_value(section.unseen)}"] if section.unseen else []
    named = [f"data={section.runs[0].data}", *unseen]
    try:
        found = rerun.overrides({}, {"overrides": named})
    except Unreadable as reason:
        return clean(f"not known: {reason}").replace("`", "?")
    command = rerun.command(["-m", *found, "method=even,opt", "seed=0,1,2"])
    return clean(command).replace("`", "?")


_TEMPLATES = markdown_templates(
    relative,
    domains_text,
    training_words,
    pair_command,
    to_markdown,
    paired_sheet,
    regret_sheet,
    compute_sheet,
    missing_sheet,
    LEFT_OUT=LEFT_OUT,
)
