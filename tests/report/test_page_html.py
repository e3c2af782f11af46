"""index.html: one file that is whole, right for anybody's names, and works alone."""

import base64
import html
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest

from robustmd.errors import UserError
from robustmd.report.write import write_report

EVIL = "a&b_<i>\"'</script><script>alert(1)</script>"
MADE = pytest.StashKey()
pytestmark = pytest.mark.filterwarnings("error")  # nor does drawing warn of anything
VOID = {"meta", "link", "img"}


class Page(HTMLParser):
    """Elements in order; fails on tags that do not nest."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def report(outputs, tmp_path, request):
    """The page of a small report, made once: no test changes it."""
    made = request.session.stash.setdefault(MADE, [])
    if not made:
        made.append(written_report(outputs, tmp_path))
    return made[0]


def written_report(outputs, tmp_path):
    curve = [{"a": 2.0, "b": 3.0}, {"a": 1.5, "b": 1.0}]
    for seed, worst in enumerate((80.0, 82.0, 90.0)):
        outputs.run("even", seed, curve=curve, test={"a": (0.5, 99.0), "b": (0.5, worst)})
        better = {"a": (0.5, 98.0), "b": (0.5, worst + 3 + seed / 10)}
        outputs.run("opt", seed, curve=curve, test=better, settings={"lam": 1.0})
    outputs.run(EVIL, 0, extra={"warnings": [EVIL], "notes": [EVIL]})
    outputs.run("even", 7, extra={"status": "failed", "message": EVIL}, folder="11111111")
    outputs.run("even", data="other <data>")
    return write_report(outputs.root, tmp_path / "report").html


def test_every_name_is_text(report):
    page = Page(report.read_text("utf-8"))
    assert len(page.all("script")) == 1
    assert page.all("i") == []
    assert EVIL in "".join(page.words)


def test_nothing_is_fetched(report):
    page = Page(report.read_text("utf-8"))
    for tag, attributes in page.elements:
        for key, value in attributes.items():
            assert not key.startswith("on"), (tag, key)
            assert key != "style", (tag, value)
            if key == "src" or tag == "link":
                assert (attributes.get("src") or attributes["href"]).startswith("data:")
            elif key == "href":
                assert value.startswith(("./", "#")), value
    assert not re.search(r"url\((?!#)|@import|https?:", report.read_text("utf-8"))


def test_every_figure_is_in_the_page_and_described(report):
    images = Page(report.read_text("utf-8")).all("img")
    assert len(images) > 4
    assert all(len(image["alt"]) > 10 for image in images)
    svg = base64.b64decode(images[0]["src"].removeprefix("data:image/svg+xml;base64,"))
    assert ET.fromstring(svg).tag.endswith("svg")
    assert b"<script" not in svg


def test_a_report_names_the_experiments_of_its_runs(outputs, written):
    for method, name in (("even", "table"), ("opt", EVIL), ("kl", None)):
        path = outputs.run(method) / "environment.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"experiment": name}))
    result = written()
    said = "".join(Page(result.html.read_text("utf-8")).words)
    assert f"Experiments: table (runs: 1), {EVIL} (runs: 1), none (runs: 1)." in said
    assert re.search(r"\|\s*row\s*\|\s*experiment\s*\|", result.page.read_text("utf-8"))
    only = written(experiment="table")
    assert [m for one in only.sections for m in one.study.runs["method"]] == ["even"]
    with pytest.raises(UserError, match=r"--experiment fair: .* there are runs of: .*\(table\)"):
        written(experiment="fair")


def test_every_link_leads_somewhere(report):
    page = Page(report.read_text("utf-8"))
    targets = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    links = [attributes["href"] for attributes in page.all("a")]
    assert any(link.endswith("/metrics.csv") for link in links)
    for link in links:
        if link.startswith("#"):
            assert link[1:] in targets
        else:
            assert (report.parent / unquote(link)).is_file(), link


def test_the_order_of_the_page(report):
    text = report.read_text("utf-8")
    toy = text[text.index('<section id="toy"') :]
    parts = [': summary"', "Trust: paired", "Missing", "<figure", "Full table"]
    parts += ["How the rows differ", "<details>", "<h3>Paired differences"]
    places = [toy.index(word) for word in parts]
    assert places == sorted(places)
    assert "verdicts by data set" in text[: text.index('<section id="toy"')]
    assert "robustmd train" in html.unescape(toy)


def test_a_reader_without_eyes_or_mouse_gets_around(report):
    page = Page(report.read_text("utf-8"))
    assert page.all("a")[0] == {"class": "skip", "href": "#main"}
    assert [one["id"] for one in page.all("main")] == ["main"]
    levels = [int(tag[1]) for tag, _ in page.elements if tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    labels = [about["aria-label"] for _, about in page.elements if "aria-label" in about]
    assert len({*labels}) == len(labels)
