"""The figures of a data set, embedded, each with its caption and its files."""

import base64
import struct
from collections.abc import Sequence
from urllib.parse import quote

from robustmd.report.page_html.markup import Markup, el, join, void
from robustmd.report.result import DrawnFile

SHOWN_SCALE = 160 / 80  # pixels of the file to one of the page: sharp on dense screens
SMALL = 480  # pixels of the page that a narrow screen can show whole


def figures(drawn: Sequence[DrawnFile], folder: str) -> Markup:
    """All of them, as data in the page: it needs no other file."""
    return el("div", *(_figure(one, folder) for one in drawn), class_="figures")


def _figure(one: DrawnFile, folder: str) -> Markup:
    width, height = (round(side / SHOWN_SCALE) for side in png_size(one.png))
    data = base64.b64encode(one.png).decode("ascii")
    image = void(
        "img",
        src=f"data:image/png;base64,{data}",
        alt=one.alt or one.title,
        width=width,
        height=height,
    )
    links = [
        join(" ", el("a", kind.upper(), href=f"./{quote(f'{folder}/{one.name}.{kind}')}"))
        for kind in ("png", "pdf")
    ]
    caption = el("figcaption", el("strong", f"{one.title}. "), one.caption, *links)
    box = el("div", image, tabindex="0", role="region", aria_label=one.title)
    return el("figure", box, caption, class_="small" if width <= SMALL else None)


def png_size(png: bytes) -> tuple[int, int]:
    """(width, height) in pixels, from the header."""
    width, height = struct.unpack(">II", png[16:24])
    return width, height
