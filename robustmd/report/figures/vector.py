"""A figure as the page has it: an SVG for each panel, whose lines a script can find, and its legend
apart, so that both fold on a narrow screen; the files beside the page have them in one image.

matplotlib draws once; its SVG is taken apart here, and styles become attributes, which the page's
content security policy allows. Text was made fit for a figure before and is escaped by the writer.
"""

import io
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.transforms import Bbox

from robustmd.report.style import figure_style

POINTS = 72  # an inch
MOST_BYTES = 800_000  # of a figure: one with more is an image
HREF = "{http://www.w3.org/1999/xlink}href"
MARKS = ("line", "band", "key")  # what begins the id of an artist that the page can find
KEPT = re.compile(r"(fill|stroke|opacity|text-anchor|font-size|clip-path|mix)[\w-]*")
WIDE = 400  # pixels, of which more are half of a wide page
LOOKS: dict[Any, Any] = {"svg.fonttype": "none", "path.simplify": False}  # values are read off it
ROOM = 3.0  # points around what is cut out


class Vector(NamedTuple):
    """`keys`: (label, sample) of each entry of the legend."""

    panels: tuple[Markup, ...]
    keys: tuple[tuple[str, Markup], ...]


def in_parts(figure: Figure, name: str) -> Vector | None:
    """The figure in parts; None where it holds pictures or too many points. `name` is its own on
    the page. Hatches are left out: their SVG is large. To be called when the figure's files are
    made, which settles where all lies: each panel gets the labels that panels have in common."""
    axes = figure.axes
    if any(axis.images for axis in axes):
        return None
    figure.set_dpi(POINTS)
    out = io.BytesIO()
    with figure_style(), mpl.rc_context(LOOKS | {"svg.hashsalt": name}):
        figure.set_layout_engine("none")  # a panel stays as large as it is in the file
        for place, axis in enumerate(axes):
            axis.set_gid(f"panel {place}")
            axis.tick_params(labelleft=True, labelbottom=True)
        for patch in figure.findobj(Patch):
            patch.set_hatch("")
        figure.savefig(out, format="svg", metadata={"Date": None})
    source = _Source(ET.fromstring(out.getvalue()), name, figure.bbox.height)
    panels = []
    for place, axis in enumerate(axes):
        found = source.part(f"panel {place}", axis.get_tightbbox() or axis.bbox)
        title = " ".join(axis.get_title().replace(r"\$", "$").split())
        found.attrib |= {"role": "img", "aria-label": title or name}
        if any("data-line" in element.attrib for element in found.iter()):
            found.attrib |= {"tabindex": "0", **_scales(axis, figure.bbox.height)}
        panels.append(_text(found))
    keys = []
    for handle in (one for legend in figure.legends for one in legend.legend_handles if one):
        gid = str(handle.get_gid())
        keys.append((gid.partition(" ")[2], _text(source.part(gid, handle.get_window_extent()))))
    return Vector(tuple(panels), tuple(keys)) if sum(map(len, panels)) <= MOST_BYTES else None


def _scales(axis: Axes, height: float) -> dict[str, str]:
    """Of either direction: where its ends lie in the SVG, the values there, and its scale."""
    box = axis.get_window_extent()
    ends = {"x": (box.x0, box.x1), "y": (height - box.y0, height - box.y1)}
    limits = {
        "x": (*axis.get_xlim(), axis.get_xscale()),
        "y": (*axis.get_ylim(), axis.get_yscale()),
    }
    found = {
        f"data-{one}": " ".join(map(str, (*(f"{end:.3f}" for end in ends[one]), *limits[one])))
        for one in ends
    }
    return found | {"data-name": axis.get_xlabel()}


class _Source:
    """matplotlib's SVG, from which parts are cut."""

    def __init__(self, root: ET.Element, name: str, height: float) -> None:
        self.name, self.height, self.count = name, height, 0
        self.by_id = _by_id(root)

    def part(self, gid: str, box: Bbox) -> ET.Element:
        """What has this id, with all that it refers to, as an SVG of its own around `box`."""
        x, y = box.x0 - ROOM, self.height - box.y1 - ROOM
        size = box.width + 2 * ROOM, box.height + 2 * ROOM
        width, height = (f"{80 * length / POINTS:.0f}" for length in size)
        view = f"{x:.2f} {y:.2f} {size[0]:.2f} {size[1]:.2f}"
        found = ET.Element("svg", {"viewBox": view, "width": width, "height": height})
        if float(width) > WIDE:
            found.set("class", "wide")
        found.append(deepcopy(self.by_id[gid]))
        self._own(found)
        for element in found.iter():
            _plain(element)
        _flatten(found)
        return found

    def _own(self, part: ET.Element) -> None:
        """Brings what is referred to into the part, under ids that the page has once."""
        there = _by_id(part)
        names: dict[str, str] = {}
        waiting = [*part.iter()]
        while waiting:
            element = waiting.pop()
            for key, wanted in [*_references(element)]:
                if wanted not in names:
                    self.count += 1
                    names[wanted] = f"{self.name}-{self.count}"
                    if wanted not in there:
                        there[wanted] = deepcopy(self.by_id[wanted])
                        ET.SubElement(part, "defs").append(there[wanted])
                        waiting += there[wanted].iter()
                element.set(key, element.attrib[key].replace(wanted, names[wanted]))
        for gid, element in there.items():
            kind, _, label = gid.partition(" ")
            del element.attrib["id"]
            if gid in names:
                element.set("id", names[gid])
            elif kind in MARKS:
                element.set(f"data-{kind}", label)


def _by_id(root: ET.Element) -> dict[str, ET.Element]:
    return {name: one for one in root.iter() if (name := one.get("id"))}


def _references(element: ET.Element) -> Iterator[tuple[str, str]]:
    """(attribute, id) of what an element refers to."""
    for key, value in element.attrib.items():
        if key == HREF and value.startswith("#"):
            yield key, value[1:]
        elif (found := re.search(r"url\(#([^)]+)\)", value)) is not None:
            yield key, found[1]


def _plain(element: ET.Element) -> None:
    """Without name spaces, styles, and digits that nobody sees."""
    element.tag = element.tag.rpartition("}")[2]
    if HREF in element.attrib:
        element.set("href", element.attrib.pop(HREF))
    for part in element.attrib.pop("style", "").split(";"):
        key, _, value = (text.strip() for text in part.partition(":"))
        if KEPT.fullmatch(key):
            element.set(key, value)
        elif key == "font" and (size := re.search(r"[\d.]+px", value)):
            element.set("font-size", size[0])
    for key, value in element.attrib.items():
        if key in ("d", "transform", "x", "y"):
            short = re.sub(r"-?\d+\.\d+", lambda found: f"{round(float(found[0]), 2):g}", value)
            curved = set(short) & set("CQ")  # after M and L alone is a pair of numbers a line
            element.set(key, short if curved else " ".join(short.replace(" L ", " ").split()))
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    element.text = (element.text or "").strip() or None
    element.tail = None


def _flatten(element: ET.Element) -> None:
    """Groups that say nothing give way to what is in them."""
    for child in element:
        _flatten(child)
    inner = [[*one] if one.tag == "g" and not one.attrib else [one] for one in element]
    element[:] = [one for several in inner for one in several]


def _text(element: ET.Element) -> Markup:
    return Markup(ET.tostring(element, encoding="unicode"))  # escaped by the writer
