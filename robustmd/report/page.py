"""The pages that tie a report together: README.md, and index.html, which is whole in itself."""

import base64
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from robustmd.report.aggregate import Group, Section
from robustmd.report.content import Report, SectionReport
from robustmd.report.estimate import SPREAD_WORDS, range_text, seconds_text
from robustmd.report.figures import Drawing
from robustmd.report.names import clean, is_many, some_text
from robustmd.report.paired import forest
from robustmd.report.renderers import asset, html_templates, markdown_templates
from robustmd.report.run_list import entries_sheet
from robustmd.report.settings_key import UNSET, differing, short_key, shown_value
from robustmd.report.sheet import NOTHING, VERDICTS, Field, Sheet, field, make_sheet

STYLE, SCRIPT = asset("style.css"), asset("page.js")

Figures = Mapping[str, Sequence[Drawing]]
PAGE = sys.modules[__name__]  # templates take what they show from here


def page_markdown(report: Report, figures: Figures) -> str:
    """README.md as text. `figures`: those of each section, by its folder."""
    templates = markdown_templates(page=PAGE)
    return templates.get_template("README.md.j2").render(report=report, figures=figures)


def page_html(report: Report, figures: Figures) -> str:
    """index.html as text, see `page_markdown`.

    The page reaches no network: its style, script and images are in it. Links lead to files
    beside it.
    """
    templates = html_templates(page=PAGE, entries_sheet=entries_sheet)
    return templates.get_template("page.html.j2").render(report=report, figures=figures)


def data_uri(svg: bytes) -> str:
    """The image as data in the page: it needs no other file, and nothing in it can run."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"


def verdict(one: SectionReport) -> str:
    """ "Worst test accuracy against even: better: opt (+6.56 points, n = 3); undecided: kl (+0.20
    points, n = 3)." Every method that was compared counts, not the best of them."""
    found, baseline = forest(one.comparisons), one.section.baseline
    if not found:
        return (
            f"No verdict: it needs {baseline} and another mixture, trained in the same way, with a "
            "seed in common, such as by -m method=even,opt seed=0,1,2."
        )
    by_word: dict[str, list[str]] = {word: [] for word in VERDICTS}
    for gain, _ in found:
        said = f"{gain.method} ({gain.mean_in_unit}, n = {gain.difference.n})"
        by_word[gain.word].append(said)
    told = "; ".join(f"{word}: {some_text(names)}" for word, names in by_word.items() if names)
    return f"{found[0][0].what.capitalize()} against {baseline}: {told}."


def protocol(one: SectionReport) -> str:
    """n, selection, what ± is, the settings that all rows share, sizes, device and compute."""
    n = range_text(len(group.runs) for group in one.section.groups)
    varying = set(differing(group.settings for group in one.section.groups))
    shared = ", ".join(
        f"{key} {shown_value(value, key)}"
        for key, value in one.section.groups[0].settings.items()
        if key.startswith(("training.", "backbone.")) and key not in varying
    )
    at_least = "" if all(row.is_complete for row in one.compute) else "at least "
    return (
        f"n = {n} seeds a row. Numbers are of {one.section.selection.words}. "
        f"±: {'none (n = 1)' if n == '1' else SPREAD_WORDS[one.section.spread]}. "
        f"Intervals: 95 % t, paired by seed. In all rows: {shared or 'nothing shared'}. "
        f"{_sizes(one.section)}{_experiments(one.section)}"
        f"Device: {', '.join(sorted({row.device for row in one.compute}))}. "
        f"Compute: {at_least}{seconds_text(sum(row.seconds for row in one.compute))} in "
        f"{sum(row.runs for row in one.compute)} runs, unfinished ones included."
    )


def _sizes(section: Section) -> str:
    """How many examples each domain trains on and is tested on."""
    final = section.runs[0].final
    sizes = {d: (final["train"][d].examples, final["test"][d].examples) for d in section.domains}
    if is_many(section.domains) or len(set(sizes.values())) == 1:
        train, test = (range_text(counts) for counts in zip(*sizes.values(), strict=True))
        return f"Each domain has {train} training and {test} test examples. "
    listed = (f"{clean(name)} {train} + {test}" for name, (train, test) in sizes.items())
    return f"Training + test examples: {', '.join(listed)}. "


def _experiments(section: Section) -> str:
    """Those that the runs were made for, of which a table brings together all on its ground."""
    counts = Counter(run.experiment or "none" for run in section.runs)
    listed = (f"{clean(name)} (runs: {count})" for name, count in counts.most_common())
    return f"Experiments: {', '.join(listed)}. " if {*counts} != {"none"} else ""


def settings_sheet(groups: Sequence[Group]) -> Sheet:
    """A row for each method, a column for each setting in which they differ."""

    def setting(key: str) -> Field:
        return field(short_key(key), lambda group: shown_value(group.settings.get(key, UNSET), key))

    def experiments(group: Group) -> str:
        return ", ".join(dict.fromkeys(run.experiment or NOTHING for run in group.runs))

    keys = differing(group.settings for group in groups)
    fields = [field("row", lambda group: group.label)]
    if len({experiments(group) for group in groups}) > 1:
        fields.append(field("experiment", experiments))
    fields += map(setting, keys)
    return make_sheet("settings that differ", groups, fields)
