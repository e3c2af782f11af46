"""Every format of a `Table`, and the templates of the pages. Anybody's text is made fit for the
format here and nowhere else."""

import base64
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from robustmd.errors import printable
from robustmd.report import statistics, tables
from robustmd.report.numbers import Study, differing, domains_text, value_of
from robustmd.report.tables import WARNED, Table
from robustmd.runs.records import Frame

_MARKDOWN = {"best": "**{}**", "second": "<u>{}</u>", "broken": "**{}**"}
_LATEX_MARKS = {"best": r"\textbf{%s}", "second": r"\underline{%s}"}
_TERMINAL = {"best": "bold", "second": "underline", "broken": "bold red", "better": "green"}
_TERMINAL |= {"worse": "red", "equivalent": "cyan", "undecided": "yellow"}
_LATEX: dict[str, str | int | None] = {
    **{letter: rf"\{letter}" for letter in "{}$&#%_"},
    **{"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    # Bare at the start of a row, [ and * would be arguments of the row before.
    **{letter: f"{{{letter}}}" for letter in "[]*"},
    **{"±": r"$\pm$", "×": r"$\times$", "−": "$-$", "–": "--", "—": "---", "²": "$^2$"},
    **{"λ": r"$\lambda$", "μ": r"$\mu$", "ν": r"$\nu$", "σ": r"$\sigma$", "η": r"$\eta$"},
    "†": r"$^\dagger$",
}
_SPECIAL = re.compile(r"[\\`*\[\]<>|~$]|(?<![^\W_])_|_(?![^\W_])")


def latex(text: str) -> str:
    """Text as LaTeX shows it, in a document whose fonts have its letters."""
    return printable(text).translate(str.maketrans(_LATEX))


def markdown(text: object) -> str:
    """Text as Markdown shows it, also inside a table; an underscore inside a word needs nothing."""
    return _SPECIAL.sub(r"\\\g<0>", printable(text)).replace("&", "&amp;")


def is_number(table: Table, column: str) -> bool:
    """Whether it is aligned right: what stands in it is ours."""
    return column != table.shown.columns[0] and column not in table.texts


def cells(table: Table) -> Iterator[list[tuple[str, str, str]]]:
    """Each row: (column, text, mark) of its cells; a verdict is its own mark."""
    for place, row in enumerate(table.shown.itertuples(index=False, name=None)):
        line = []
        for column, text in zip(table.shown, row, strict=True):
            word = text.partition(":")[0] if column == "verdict" else ""
            mark = word if word in statistics.VERDICTS else ""
            line.append((column, text, table.marks.get((place, column), mark)))
        yield line


def spreadsheet_text(text: str) -> str:
    """Text that a spreadsheet shows: one that would be a formula begins with an apostrophe."""
    return f"'{printable(text)}" if text.startswith(("=", "+", "-", "@")) else printable(text)


def to_csv(table: Frame) -> str:
    """One line for each row, with every digit; an empty field is a number that does not exist."""
    words = table.map(lambda value: spreadsheet_text(value) if isinstance(value, str) else value)
    return words.rename(columns=spreadsheet_text).to_csv(index=False, lineterminator="\n")


def to_markdown(table: Table) -> str:
    """A pipe table under its caption; what runs warned of and noted below it."""
    lines = [[markdown(column) for column in table.shown]]
    lines.append(["---:" if is_number(table, column) else "---" for column in table.shown])
    for row in cells(table):
        texts = (text if is_number(table, column) else markdown(text) for column, text, _ in row)
        marks = (_MARKDOWN.get(mark, "{}") for *_, mark in row)
        lines.append([mark.format(text) for mark, text in zip(marks, texts, strict=True)])
    blocks = [f"**{markdown(alarm)}**" for alarm in table.alarms]
    blocks += [markdown(table.caption)] if table.caption else []
    blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    below = {f"{WARNED} Warnings:": table.warnings, "Notes of these runs:": table.notes}
    for title, said in below.items():
        if said:
            blocks += [title, "\n".join(f"- {markdown(line)}" for line in said)]
    return "\n\n".join(blocks) + "\n"


def to_latex(table: Table) -> str:
    """A `table` environment, one line a row, for `\\input` in a document that has
    `\\usepackage{booktabs}`."""
    body = []
    for place, row in enumerate(cells(table)):
        body += [r"\midrule"] * (place == table.published)
        texts = (_LATEX_MARKS.get(mark, "%s") % latex(text) for _, text, mark in row)
        body.append(" & ".join(texts) + r" \\")
    columns = "".join("r" if is_number(table, column) else "l" for column in table.shown)
    said = " ".join([r"$^\dagger$", *(latex(line) + "." for line in table.warnings)])
    below = [rf"\par\smallskip\parbox{{\linewidth}}{{\scriptsize\raggedright {said}}}"]
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\scriptsize\setlength{\tabcolsep}{2pt}",
        rf"\caption{{{latex(table.caption)}}}\smallskip",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(map(latex, table.shown)) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        *(below if table.warnings else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def to_terminal(table: Table, width: int) -> RichTable:
    """For a console of rich: it folds words where the console is too narrow, and loses none."""
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False, padding=0)
    texts = [[column, *table.shown[column]] for column in table.shown]
    for column, letters in zip(table.shown, column_widths(texts, width), strict=True):
        right: Any = "right" if is_number(table, column) else "left"
        heading = Text(printable(column))
        shown.add_column(heading, justify=right, width=letters, overflow="fold")
    for place, row in enumerate(cells(table)):
        line = (Text(printable(text), _TERMINAL.get(mark, "")) for _, text, mark in row)
        shown.add_row(*line, style="dim" if place >= table.published else None)
    return shown


def column_widths(texts: Sequence[Sequence[str]], width: int) -> list[int]:
    """Of columns that together have `width`: those shrink that can be folded between words, then
    the widest."""
    widths = [max(cell_len(printable(text)) for text in column) for column in texts]
    words = [
        max((cell_len(printable(word)) for text in column for word in text.split()), default=1)
        for column in texts
    ]
    while sum(widths) + len(widths) >= width and max(widths) > 1:
        slack = [own - word for own, word in zip(widths, words, strict=True)]
        widths[slack.index(max(slack)) if max(slack) > 0 else widths.index(max(widths))] -= 1
    return widths


def page(kind: str, report: Any) -> str:
    """README.md ("markdown") or index.html ("html") of a report as text.

    The HTML page reaches no network: its style, script and images are in it. What would break a
    line, steer a terminal or turn the direction of text is written out.
    """
    text: Callable[[object], str] = printable if kind == "html" else markdown
    templates = Environment(
        loader=PackageLoader("robustmd.report"),
        autoescape=kind == "html",
        finalize=lambda value: value if isinstance(value, Markup) else text(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    folder = resources.files("robustmd.report") / "templates"
    templates.globals |= {
        "to_markdown": lambda table: Markup(to_markdown(table)),
        "style": Markup((folder / "style.css").read_text("utf-8")),
        "script": Markup((folder / "page.js").read_text("utf-8")),
        "WARNED": WARNED,
        **{f.__name__: f for f in (cells, is_number, protocol, data_uri, link)},
    }
    name = "page.html.j2" if kind == "html" else "README.md.j2"
    return templates.get_template(name).render(report=report)


def data_uri(svg: bytes) -> str:
    """The image as data in the page: it needs no other file, and nothing in it can run."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"


def link(*parts: str) -> str:
    """A path below the page."""
    return "./" + "/".join(parts)


def protocol(study: Study) -> str:
    """n, selection, what ± is, the settings that all rows share, sizes, device and compute."""
    n = tables.range_text(study.runs.groupby("row").size())
    varying = {*differing(study.rows["settings"])}
    first = study.rows["settings"].iloc[0]
    shared = ", ".join(
        f"{key} {value_of(first, key)}"
        for key in first
        if key.startswith(("training.", "backbone.")) and key not in varying
    )
    raw = tables.compute(study).raw
    at_least = "" if (raw["complete"] == "yes").all() else "at least "
    return (
        f"Domains: {domains_text(study.domains)}. n = {n} seeds a row. "
        f"Numbers are of {study.rule.words}. "
        f"±: {'none (n = 1)' if n == '1' else statistics.SPREADS[study.spread]}. "
        f"Intervals: 95 % t, paired by seed. In all rows: {shared or 'nothing shared'}. "
        f"{_sizes(study)}{_experiments(study)}"
        f"Device: {', '.join(sorted({*raw['device']}))}. "
        f"Compute: {at_least}{tables.seconds_text(raw['seconds'].sum())} in "
        f"{raw['finished'].sum() + raw['unfinished'].sum()} runs, unfinished ones included."
    )


def _sizes(study: Study) -> str:
    """How many examples each domain trains on and is tested on."""
    sizes = [study.sizes.iloc[0].astype(int), study.last("test", "examples").iloc[0].astype(int)]
    if study.is_many or all(one.nunique() == 1 for one in sizes):
        train, test = map(tables.range_text, sizes)
        return f"Each domain has {train} training and {test} test examples. "
    pairs = zip(study.domains, *sizes, strict=True)
    listed = (f"{name} {train} + {test}" for name, train, test in pairs)
    return f"Training + test examples: {', '.join(listed)}. "


def _experiments(study: Study) -> str:
    """Those that the runs were made for, of which a table brings together all on its ground."""
    counts = Counter(name or "none" for name in study.runs["experiment"])
    listed = (f"{name} (runs: {count})" for name, count in counts.most_common())
    return f"Experiments: {', '.join(listed)}. " if {*counts} != {"none"} else ""
