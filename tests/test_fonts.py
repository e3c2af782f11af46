"""Names in letters that matplotlib's own font lacks: drawn by an installed font, else escaped."""

import warnings

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

from robustmd import fonts
from robustmd.report import style
from robustmd.report.aggregate import sections
from robustmd.report.content import report_on
from robustmd.report.figures import draw_all, image_bytes
from robustmd.runs.reader import collect


def square():
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for point in ((0, 900), (900, 900), (900, 0)):
        pen.lineTo(point)
    pen.closePath()
    return pen.glyph()


@pytest.fixture
def cats(tmp_path, monkeypatch):
    """An installed font that has 猫 and 犬 and no other letter but those of "a cat"."""
    names = {ord(c): f"u{ord(c):x}" for c in "猫犬a ct"}
    order = [".notdef", *names.values()]
    made = FontBuilder(1000)
    made.setupGlyphOrder(order)
    made.setupCharacterMap(names)
    made.setupGlyf({name: square() for name in order})
    made.setupHorizontalMetrics(dict.fromkeys(order, (1000, 0)))
    made.setupHorizontalHeader(ascent=900, descent=-100)
    made.setupNameTable({"familyName": "Two Cats", "styleName": "Regular", "psName": "TwoCats"})
    made.setupOS2()
    made.setupPost()
    made.save(tmp_path / "cats.ttf")
    known = font_manager.fontManager.ttflist
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*known])
    font_manager.fontManager.addfont(tmp_path / "cats.ttf")
    monkeypatch.setattr(style, "_families", {fonts.DEFAULT: None})
    fonts.font_with.cache_clear()
    yield str(tmp_path / "cats.ttf")
    fonts.font_with.cache_clear()


def test_a_name_is_drawn_with_the_font_that_has_it_and_the_rest_is_escaped(cats):
    assert fonts.in_one_font("a cat 猫") == ("a cat 猫", cats)
    assert fonts.font_with(frozenset("猫")).name == "Two Cats"
    assert fonts.in_one_font("猫 dog") == ("\\u732b dog", None)  # the font has no d
    assert fonts.in_one_font("🐈") == ("\\U0001f408", None)
    assert fonts.in_one_font("Ελλάδα, café – λ") == ("Ελλάδα, café – λ", None)
    assert style.figure_text("猫🐈 dog") == "猫\\U0001f408 dog"


def drawn(outputs):
    (section,), _ = sections(collect(outputs.root).runs)
    return list(draw_all(report_on(section)))


@pytest.mark.parametrize("other", ["犬", "鳥"])
@pytest.mark.usefixtures("cats")
def test_a_figure_has_no_boxes_and_says_what_it_escapes(outputs, other):
    names = {"猫": (0.5, 80.0), other: (0.3, 90.0)}
    outputs.run(train=names, curve=[dict.fromkeys(names, 2.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of each glyph that is missing
        found = drawn(outputs)
        pdfs = [image_bytes(one.figure, "pdf") for one in found]
    assert {one.name for one in found} == {"worst_case_training_loss", "discrepancy"}
    assert all(one.caption.endswith(fonts.NOTE) == (other == "鳥") for one in found)
    assert b"TwoCats" in pdfs[1]
