"""Names brought into narrow columns: the largest letters that fit, broken into lines, cut short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from robustmd.domains.painting import text_width

LINE = 1.25  # height of a line, in sizes of its letters


def fitting_size(texts: Iterable[str], width: float, sizes: Sequence[int]) -> int:
    """The first of `sizes` (falling, in pixels) in which every word fits; the last if none does."""
    longest = {word for text in texts for word in text.split()}
    for size in sizes:
        if all(text_width(word, size) <= width for word in longest):
            return size
    return sizes[-1]


def wrapped(text: str, size: int, width: float, most: int = 3) -> list[str]:
    """The text in lines of at most `width` pixels, at most `most` of them; … where it is cut."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(joined, size) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1]}…"]
    return [_cut(line, size, width) for line in lines] or [""]


def _cut(line: str, size: int, width: float) -> str:
    if text_width(line, size) <= width:
        return line
    line = line.rstrip("…")
    while line and text_width(f"{line}…", size) > width:
        line = line[:-1]
    return f"{line}…"
