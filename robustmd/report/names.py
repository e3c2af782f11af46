"""Names from configs are anybody's text: made fit for Markdown, LaTeX, figures and a terminal.

Tables, figures and pages have a column, a line or a word for each of at most `MOST_NAMED` domains.
Of more they show the worst, the worst tenth and the mean; the numbers of each are in domains.csv,
table.csv and runs.csv.
"""

import re
from collections.abc import Sequence

from robustmd.errors import printable

clean = printable  # one line that steers no terminal

# Three columns for each domain: eight make a table of 28, which a wide screen just holds, and eight
# lines are what one panel can tell apart without a colour seen twice.
MOST_NAMED = 8

_LATEX: dict[str, str | int | None] = {
    **{letter: rf"\{letter}" for letter in "{}$&#%_"},
    **{"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    # Bare at the start of a row, [ and * would be arguments of the row before.
    **{letter: f"{{{letter}}}" for letter in "[]*"},
    **{"±": r"$\pm$", "×": r"$\times$", "−": "$-$", "–": "--", "—": "---", "²": "$^2$"},
    **{"λ": r"$\lambda$", "μ": r"$\mu$", "ν": r"$\nu$", "σ": r"$\sigma$", "η": r"$\eta$"},
    **{"∇": r"$\nabla$", "‖": r"$\|$"},
}
_MARKDOWN = re.compile(r"[\\`*\[\]<>|~$]|(?<![^\W_])_|_(?![^\W_])")


def latex(text: str) -> str:
    """Text as LaTeX shows it, in a document whose fonts have its letters."""
    return clean(text).translate(str.maketrans(_LATEX))


def markdown(text: str) -> str:
    """Text as Markdown shows it, also inside a table; an underscore inside a word needs nothing."""
    return _MARKDOWN.sub(r"\\\g<0>", clean(text)).replace("&", "&amp;")


def is_many(domains: Sequence[object]) -> bool:
    """Whether they are summarised."""
    return len(domains) > MOST_NAMED


def domains_text(domains: Sequence[str]) -> str:
    """ "mnist, svhn"; "1,000 domains, rotate_0_sigma_0 to rotate_352.8_sigma_76" of many."""
    if not is_many(domains):
        return ", ".join(domains)
    return f"{len(domains):,} domains, {domains[0]} to {domains[-1]}"


def some_text(names: Sequence[str]) -> str:
    """ "a, b, c" of at most `MOST_NAMED`; "a, b, c and 37 more" of more."""
    if not is_many(names):
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3:,} more"
