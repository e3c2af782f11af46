"""index.html: one file that is whole, right for anybody's names, and works in a browser."""

import base64
import html
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from robustmd.report.page import policy
from robustmd.report.renderers import html_templates, markdown_templates
from robustmd.report.report import write_report

EVIL = "a&b_<i>\"'</script><script>alert(1)</script>"
MADE = pytest.StashKey()
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
    (given,) = [a["content"] for a in page.all("meta") if a.get("http-equiv")]
    assert given == policy()
    assert given.startswith("default-src 'none'; img-src data:;")
    assert not re.search(r"url\(|@import|https?:", report.read_text("utf-8"))


def test_every_image_is_whole_and_described(report):
    from io import BytesIO

    from PIL import Image

    images = Page(report.read_text("utf-8")).all("img")
    assert len(images) > 4
    for image in images:
        head, _, data = image["src"].partition(",")
        assert head == "data:image/png;base64"
        Image.open(BytesIO(base64.b64decode(data, validate=True))).load()
        assert len(image["alt"]) > 10


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


def test_the_first_screen(report):
    text = report.read_text("utf-8")
    toy = text[text.index('<section id="toy"') if '<section id="toy"' in text else 0 :]
    order = [
        "Worst test accuracy against even: ",
        "Numbers are of",
        "worst acc_te",
        "Paired differences",
        "Missing",
    ]
    places = [toy.index(word) for word in order]
    assert places == sorted(places)
    assert places[-1] < toy.index("<figure")
    assert "undecided: opt (+1.55 points, n = 3)" in toy
    assert "robustmd train" in html.unescape(toy)


def test_worst_columns_first_and_headings_sort(report):
    text = report.read_text("utf-8")
    headings = re.findall(r"<th[^>]*><button type=\"button\">([^<]*)</button></th>", text)
    assert headings[:5] == ["method", "worst acc_te", "n", "cfg", "worst acc_tr"]


def test_the_licences_are_printed(outputs, tmp_path):
    outputs.run(extra={"licences": {"a": "research", "b": "non-commercial use only"}})
    text = write_report(outputs.root, tmp_path / "report").html.read_text("utf-8")
    assert (
        "<li>non-commercial use only: b; no example images: it does not let them be shown</li>"
        in text
    )


@pytest.mark.parametrize(
    ("templates", "shown"),
    [
        (html_templates, r'<i title="&lt;b&gt;&#34;\u202e\n*">&lt;b&gt;&#34;\u202e\n*</i>'),
        (markdown_templates, r'<i title="\<b\>"\\u202e\\n\*">\<b\>"\\u202e\\n\*</i>'),
    ],
)
def test_what_a_template_shows_is_text(templates, shown):
    template = templates().from_string('<i title="{{ text }}">{{ text }}</i>')
    assert template.render(text='<b>"\u202e\n*') == shown


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
PROBE = """<script>
const said = [];
addEventListener("error", (e) => said.push("error: " + e.message));
addEventListener("securitypolicyviolation", (e) => said.push("blocked: " + e.violatedDirective));
addEventListener("load", () => {
  const images = [...document.images];
  said.push("images " + images.filter((i) => i.naturalWidth > 0).length + "/" + images.length);
  const table = document.querySelectorAll("table")[0];
  const names = () => [...table.tBodies[0].rows].map((r) => r.cells[0].innerText).join(" ");
  const button = table.querySelectorAll("th button")[1];
  button.focus();
  button.click(); said.push(button.closest("th").ariaSort + ": " + names());
  button.click(); said.push(button.closest("th").ariaSort + ": " + names());
  said.push("wide " + (document.documentElement.scrollWidth - innerWidth));
  document.body.textContent = "PROBE[" + said.join("|") + "]";
});
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed here")
@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_in_a_browser(outputs, tmp_path, width):
    for method, worst in (("even", 80.0), ("opt", 95.0), ("kl", 85.0)):
        outputs.run(method, test={"a": (0.5, 99.0), "b": (0.5, worst)})
    page = write_report(outputs.root, tmp_path / "report").html
    text = page.read_text("utf-8").replace("</title>", f"</title>{PROBE}", 1)
    probe = PROBE.removeprefix("<script>").removesuffix("</script>")
    page.write_text(text.replace("script-src ", f"script-src '{sha256(probe)}' "), "utf-8")
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900"]
    command += ["--virtual-time-budget=5000", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    found = re.search(r"<body>PROBE\[(.*)\]", done.stdout)
    assert found, done.stderr[-2000:]
    images, first, second, wide = found[1].split("|")
    loaded, there = images.removeprefix("images ").split("/")
    assert loaded == there != "0"
    assert (first, second) == ("descending: opt kl even", "ascending: even kl opt")
    assert int(wide.removeprefix("wide ")) <= 0, "the page is wider than the window"


def sha256(text):
    import hashlib

    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def test_the_same_runs_give_the_same_page(outputs, tmp_path):
    outputs.run()
    first = write_report(outputs.root, tmp_path / "1" / "report").html
    second = write_report(outputs.root, tmp_path / "2" / "report").html
    assert first.read_bytes() == second.read_bytes()
    assert str(Path(tmp_path)) not in first.read_text("utf-8")
