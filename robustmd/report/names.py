"""Names from configs are anybody's text: made fit for Markdown, LaTeX, figures and a terminal."""

import unicodedata

from robustmd.errors import printable

clean = printable  # one line that steers no terminal

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # bare at the start of a row, [ and * would be arguments of the row before
    "]": "{]}",
    "*": "{*}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "×": r"$\times$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "ν": r"$\nu$",
    "σ": r"$\sigma$",
    "η": r"$\eta$",
}
_MARKDOWN = frozenset("\\`*[]<>|~$")


def latex(text: str) -> str:
    """Text as LaTeX shows it, with booktabs' document and pdflatex: letters that a minimal document
    cannot set are given by their code point."""
    return "".join(_latex_character(c) for c in clean(text))


def _latex_character(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    accented = "\u00c0" <= character <= "\u00ff" and unicodedata.decomposition(character)
    return character if character.isascii() or accented else f"{{[}}U+{ord(character):04X}{{]}}"


def markdown(text: str) -> str:
    """Text as Markdown shows it, also inside a table; an underscore inside a word needs nothing."""
    line = clean(text)
    return "".join(_markdown_character(line, i) for i in range(len(line)))


def _markdown_character(line: str, index: int) -> str:
    character = line[index]
    if character == "&":
        return "&amp;"
    inside_word = line[max(index - 1, 0)].isalnum() and line[index + 1 : index + 2].isalnum()
    if character in _MARKDOWN or (character == "_" and not inside_word):
        return "\\" + character
    return character
