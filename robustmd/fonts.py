"""Letters for names in any script: those that DejaVu Sans lacks come from an installed font that
has them; what no font has is escaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.font_manager import FontEntry

DEFAULT = "DejaVu Sans"  # ships with matplotlib
EVERYTHING = ("Last Resort", "Adobe Blank")  # a box, or nothing, for each letter there is
NOTE = "Letters that no installed font has are written as their code points (\\u732b)."
_SURELY = re.compile("[ -~\u00a0-\u024f–—…−]*")  # known without a look into the font


def lacking(text: str) -> frozenset[str]:
    """The letters of the text that `DEFAULT` does not have."""
    if _SURELY.fullmatch(text):
        return frozenset()
    from matplotlib import font_manager  # noqa: PLC0415 - slow to load, and few names need it

    return frozenset(text) - _letters(font_manager.findfont(DEFAULT))


@cache
def font_with(letters: frozenset[str]) -> FontEntry | None:
    """The first installed font, by family (`name`), that has all these letters, with its file
    (`fname`); None where there is none."""
    from matplotlib.font_manager import fontManager  # noqa: PLC0415

    known = sorted(
        fontManager.ttflist, key=lambda f: (f.name, fontManager.score_weight(f.weight, 400))
    )
    for one in known:
        is_regular = one.style == "normal" and not one.name.startswith(EVERYTHING)
        if is_regular and letters <= _letters(one.fname):
            return one
    return None


def escaped(text: str, letters: Iterable[str]) -> str:
    """The text with these letters as code points: "\\u732b", "\\U0001f431"."""
    codes = {ord(c): c.encode("unicode_escape").decode() for c in letters}
    return text.translate(codes)


def in_one_font(text: str) -> tuple[str, str | None]:
    """The text as one font can draw it, and that font's file; None: `DEFAULT`, with the rest
    escaped."""
    missing = lacking(text)
    font = font_with(frozenset(text)) if missing else None
    return (text, font.fname) if font is not None else (escaped(text, missing), None)


def width(text: str) -> int:
    """How many letters' room it takes: Chinese and the like are twice as wide."""
    return len(text) + sum(unicodedata.east_asian_width(c) in "WF" for c in text)


@cache
def _letters(path: str) -> frozenset[str]:
    """None of a font that cannot be read."""
    from matplotlib import font_manager  # noqa: PLC0415

    try:
        return frozenset(map(chr, font_manager.get_font(path).get_charmap()))
    except (OSError, RuntimeError):
        return frozenset()
