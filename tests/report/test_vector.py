"""A figure's parts on the page: what can be read off them, and that nobody's name does harm."""

import math
import re
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from robustmd.report.figures import image_bytes, in_parts
from robustmd.report.figures.bars import row_figure
from robustmd.report.figures.lines import Line, Panel, band, line_figure
from robustmd.report.style import figure_style, place_style

EVIL = 'url(#p) a&b_<i>"</g></svg><script>alert(1)</script>\u202e$x$'
TAGS = {"svg", "g", "path", "use", "defs", "text", "clipPath", "rect"}
SHOWN = EVIL.replace("\u202e", "\\u202e")  # what would turn the text is written out


def made(label="opt", *, seeds=3, log=True, count=2):
    """(figure, its lines' means): a panel for each of `count` lines."""
    lines = []
    for place in range(count):
        values = {seed: 2.0 ** -(np.arange(5.0) + place + seed / 10) for seed in range(seeds)}
        frame = pd.DataFrame(values, index=range(0, 500, 100))
        lines.append(Line(f"{label}{place}", band(frame, "std"), seeds, place_style(place)))
    panels = [Panel(line.label, "loss", [line], log=log) for line in lines]
    figure = line_figure("toy", panels, share_y=True)
    image_bytes(figure, "png")
    return figure, [line.band["mean"] for line in lines]


def scaled(text, places):
    start, end, low, high, kind = text.split()
    share = (np.array(places) - float(start)) / (float(end) - float(start))
    low, high = float(low), float(high)
    return low * (high / low) ** share if kind == "log" else low + share * (high - low)


@pytest.mark.parametrize("log", [True, False])
def test_the_values_can_be_read_off_the_curves(log):
    figure, means = made(log=log)
    parts = in_parts(figure, "toy")
    assert [label for label, _ in parts.keys] == ["opt0", "opt1"]
    for panel, mean in zip(parts.panels, means, strict=True):
        root = ET.fromstring(panel)
        (line,) = (one for one in root.iter("g") if "data-line" in one.attrib)
        steps = np.array(re.findall(r"-?[\d.]+", line.find("path").get("d")), float)
        x, y = steps.reshape(-1, 2).cumsum(axis=0).T
        np.testing.assert_allclose(scaled(root.get("data-x"), x), mean.index, atol=0.2)
        found = scaled(root.get("data-y"), y)
        np.testing.assert_allclose(found, mean, rtol=1e-3, atol=0 if log else 1e-4)
        assert sum("data-band" in one.attrib for one in root.iter()) == 1
        assert root.get("data-name") == "iteration"


def test_labels_are_text_and_nothing_is_styled_in_place():
    parts = in_parts(made(EVIL)[0], "toy")
    assert [label for label, _ in parts.keys] == [f"{SHOWN}0", f"{SHOWN}1"]
    whole = [*parts.panels, *(sample for _, sample in parts.keys)]
    elements = [one for text in whole for one in ET.fromstring(text).iter()]
    assert {one.tag for one in elements} <= TAGS
    assert not any({"style", "class"} & {*one.attrib} for one in elements)
    ids = [one.get("id") for one in elements if "id" in one.attrib]
    assert len(ids) == len({*ids})
    assert {*ids} == {*re.findall(r'(?:(?:clip-path|fill)="url\(|href=")#([^")]+)', "".join(whole))}


def test_panels_stand_alone_with_the_names_of_their_rows():
    with figure_style():
        figure, axes = row_figure("toy", ["even", "a longer name"], columns=2)
        for axis in axes:
            axis.barh([0, 1], [1.0, 2.0], hatch="////")
    image_bytes(figure, "png")
    parts = in_parts(figure, "toy")
    assert [panel.count(">a longer name<") for panel in parts.panels] == [1, 1]
    assert not any("pattern" in panel or "tabindex" in panel for panel in parts.panels)


def test_pictures_and_what_is_too_large_stay_images(monkeypatch):
    figure, _ = made(count=1)
    monkeypatch.setattr("robustmd.report.figures.vector.MOST_BYTES", 1000)
    assert in_parts(figure, "toy") is None
    monkeypatch.setattr("robustmd.report.figures.vector.MOST_BYTES", math.inf)
    figure.axes[0].imshow(np.zeros((2, 2)))
    assert in_parts(figure, "toy") is None
