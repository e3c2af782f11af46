"""The documentation as a site: bash scripts/docs.sh"""

import itertools
import re

from robustmd import __version__

project = "robustmd"
author = copyright = "The robustmd authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.napoleon", "sphinx.ext.autodoc"]
exclude_patterns = ["conf.py"]
html_theme = "furo"
html_title = f"robustmd {version}"
myst_heading_anchors = 3  # pages link to each other's headings, as in the repository
autodoc_member_order = "bysource"
autodoc_typehints = "description"
default_role = "code"

# Links to files of the repository that are not on the site: they become their words.
_OUTSIDE = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)*(?:robustmd|tests|examples|[A-Z]\w+(?=[.)]))[^)]*\)"
)
_SECTION = re.compile(r"(Args|Returns|Raises|Yields|Attributes|Note|Example)s?:$")


def as_rst(_app, _what, _name, _obj, _options, lines):
    """Docstrings are written to be read where they stand: formulas and blocks are indented, tables
    drawn with bars. Sphinx has to be told."""
    out, sections, goes_on = [], False, False
    blocks = "\n".join(lines).strip("\n").split("\n\n")
    for block in blocks:
        text = block.splitlines()
        sections = sections or bool(_SECTION.match(text[0]))
        if sections:
            out += [block.replace("|", r"\|").replace("*", r"\*"), ""]
        elif text[0].startswith("|"):
            rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in text]
            out += [".. list-table::", "   :header-rows: 1", ""]
            for row in rows[:1] + rows[2:]:
                out += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
            out.append("")
        else:
            prose = list(itertools.takewhile(lambda line: not line.startswith("    "), text))
            drawn = text[len(prose) :]
            if prose:
                out += [re.sub(r"([|*])", r"\\\1", "\n".join(prose)), ""]
            if drawn and (prose or not goes_on):
                out += ["::", ""]
            out += [*(f"    {line}" for line in drawn), ""]
            goes_on = bool(drawn)
    lines[:] = "\n".join(out).splitlines()


def without_links_outside(_app, *names_and_text):
    names_and_text[-1][0] = _OUTSIDE.sub(r"\1", names_and_text[-1][0])


def setup(app):
    app.connect("autodoc-process-docstring", as_rst, priority=100)  # before napoleon
    app.connect("source-read", without_links_outside)
    app.connect("include-read", without_links_outside)
