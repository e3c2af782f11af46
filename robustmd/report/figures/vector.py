"""A figure as the page has it: an SVG for each panel, whose lines a script can find, and its legend
apart, so that both fold on a narrow screen; the files beside the page have them in one image.

matplotlib draws once; its SVG is taken apart here, and styles become attributes, which the page's
content security policy allows. Text was made fit for a figure before and is escaped by the writer.
"""

import io
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.transforms import BboxBase

from robustmd.report.style import figure_style

POINTS = 72  # an inch
MOST_BYTES = 800_000  # of a figure: one with more is an image
HREF = "{http://www.w3.org/1999/xlink}href"
MARKS = ("line", "band", "key")  # what begins the id of an artist that the page can find
KEPT = re.compile(r"(fill|stroke|opacity|text-anchor|font-size|clip-path)[\w-]*")
WIDE = 400  # pixels, of which more are half of a wide page
LOOKS: dict[Any, Any] = {"svg.fonttype": "none", "path.simplify": False}  # values are read off it
ROOM = 3.0  # points around what is cut out


class Vector(NamedTuple):
    """`keys`: (label, sample) of each entry of the legend. All are of one page: what one refers to
    may stand in another."""

    panels: tuple[Markup, ...]
    keys: tuple[tuple[str, Markup], ...]


def in_parts(figure: Figure, name: str) -> Vector | None:
    """The figure in parts; None where it holds pictures or too many points. `name` is its own on
    the page. Hatches are left out: their SVG is large. To be called when the figure's files are
    made, which settles where all lies: each panel gets the labels that panels have in common."""
    axes = figure.axes
    if any(axis.images for axis in axes):
        return None
    figure.set_layout_engine("none")  # a panel stays as large as it is in the file
    figure.set_dpi(POINTS)
    for place, axis in enumerate(axes):
        axis.set_gid(f"panel {place}")
        axis.tick_params(labelleft=True, labelbottom=True)
    for patch in figure.findobj(Patch):
        patch.set_hatch("")
    out = io.BytesIO()
    with figure_style(), mpl.rc_context(LOOKS | {"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    root, height = ET.fromstring(out.getvalue()), figure.bbox.height
    by_id = {one.get("id", ""): one for one in root.iter()}
    for defs in root.findall("{*}defs"):
        by_id["panel 0"].extend(defs.findall("{*}clipPath"))
        root.remove(defs)
    wanted = {*re.findall(r'(?:url\(|href=")#([^")]+)', out.getvalue().decode("utf-8"))}
    for element in root.iter():
        _plain(element, name, wanted)
    panels = []
    for place, axis in enumerate(axes):
        title = " ".join(axis.get_title().replace(r"\$", "$").split())
        about = {"role": "img", "aria-label": title or name, **_scales(axis, height)}
        box = axis.get_tightbbox() or axis.bbox
        panels.append(_cut(by_id[f"panel {place}"], box, height, about))
    keys = []
    for handle in (one for legend in figure.legends for one in legend.legend_handles if one):
        sample = by_id[str(handle.get_gid())]
        keys.append((sample.attrib["data-key"], _cut(sample, handle.get_window_extent(), height)))
    return Vector(tuple(panels), tuple(keys)) if sum(map(len, panels)) <= MOST_BYTES else None


def _scales(axis: Axes, height: float) -> dict[str, str]:
    """Of either direction: where its ends lie in the SVG, the values there, and its scale."""
    if not any(str(line.get_gid()).startswith("line ") for line in axis.lines):
        return {}
    (left, right), (low, high) = axis.bbox.intervalx, height - axis.bbox.intervaly
    x = left, right, *axis.get_xlim(), axis.get_xscale()
    y = low, high, *axis.get_ylim(), axis.get_yscale()
    found = {"data-x": " ".join(map(str, x)), "data-y": " ".join(map(str, y))}
    return found | {"data-name": axis.get_xlabel(), "tabindex": "0"}


def _cut(
    element: ET.Element, box: BboxBase, height: float, about: Mapping[str, str] = {}
) -> Markup:
    """An SVG of its own around `box`."""
    x, y = box.x0 - ROOM, height - box.y1 - ROOM
    size = box.width + 2 * ROOM, box.height + 2 * ROOM
    pixels = [round(80 * length / POINTS) for length in size]
    view = " ".join(f"{number:.2f}" for number in (x, y, *size))
    shape = {"viewBox": view, "width": f"{pixels[0]}", "height": f"{pixels[1]}", **about}
    found = ET.Element("svg", shape | ({"class": "wide"} if pixels[0] > WIDE else {}))
    found.append(element)
    return Markup(ET.tostring(found, encoding="unicode"))  # escaped by the writer


def _plain(element: ET.Element, name: str, wanted: Iterable[str]) -> None:
    """Without name spaces, styles, ids that nothing refers to, and digits that nobody sees."""
    element.tag = element.tag.rpartition("}")[2]
    element.text, element.tail = (element.text or "").strip() or None, None
    found, own = element.attrib.copy(), element.attrib
    own.clear()
    gid = found.pop("id", "")
    kind, _, label = gid.partition(" ")
    if gid in wanted:
        own["id"] = f"{name}-{gid}"
    elif kind in MARKS:
        own[f"data-{kind}"] = label
    for part in found.pop("style", "").split(";"):
        key, _, value = (text.strip() for text in part.partition(":"))
        if KEPT.fullmatch(key):
            own[key] = value
        elif key == "font" and (size := re.search(r"[\d.]+px", value)):
            own["font-size"] = size[0]
    for key, value in found.items():
        if key == HREF:
            own["href"] = value.replace("#", f"#{name}-")
        elif key == "d" and re.fullmatch(r"M[^A-Z]*(L[^A-Z]*)+", value):
            own[key] = _steps(value)
        elif key in ("d", "transform", "x", "y"):
            own[key] = re.sub(r"-?\d+\.\d+", lambda n: f"{round(float(n[0]), 2):g}", value)
        else:
            own[key] = value.replace("url(#", f"url(#{name}-")
    if own.get("transform", "").startswith("rotate(-0 "):
        del own["transform"]


def _steps(line: str) -> str:
    """ "M10 20l3 -1 4 0": from its first point on by steps, which are shorter than places."""
    points = np.array(re.findall(r"-?[\d.]+", line), float).round(2).reshape(-1, 2)
    first, *steps = np.diff(points, axis=0, prepend=0.0).round(2)
    texts = [" ".join(f"{x:g} {y:g}" for x, y in some) for some in ([first], steps)]
    return f"M{'l'.join(texts)}{'z' if line.rstrip().endswith('z') else ''}"
