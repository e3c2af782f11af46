"""index.html: one file that is whole, right for anybody's names, and works in a browser."""

import html
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import numpy as np
import pytest

from robustmd.errors import UserError
from robustmd.report import page
from robustmd.report.page import policy
from robustmd.report.renderers import html_templates, markdown_templates
from robustmd.report.report import write_report

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
    path = outputs.run(EVIL, 0, extra={"warnings": [EVIL], "notes": [EVIL]})
    log = "".join(f"line {i}\n" for i in range(30)) + "10 %\r50 %, as a bar shows it\n"
    (path / "train.log").write_text(f"{log}</pre>\x1b[31m<script>\n\n")
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
    assert not re.search(r"url\((?!#)|@import|https?:", report.read_text("utf-8"))


def test_every_figure_is_drawn_and_described(report):
    page = Page(report.read_text("utf-8"))
    groups = [a for tag, a in page.elements if a.get("class") == "panels" and "role" in a]
    assert len(page.all("figure")) == len(groups) > 4
    assert all(len(group["aria-label"]) > 10 for group in groups)
    described = [a for a in page.all("svg") if a.get("role") == "img"]
    assert len(described) > len(groups)
    assert all(a["aria-label"] for a in described)
    assert page.all("img") == []


def test_every_run_opens_to_its_curves_config_and_log(report):
    text = report.read_text("utf-8")
    runs = re.findall(r'<details class="run".*?</details>', text, re.DOTALL)
    assert len(runs) == 9
    (first,) = (run for run in runs if "<summary>opt, seed 2: finished" in run)
    assert "training loss [nats], 0.25 to 3; at the end:" in first
    assert "learning_rate: 0.03\n" in first
    assert '<polyline points="0,29 160,44 320,73" class="line0"/>' in first
    logged = [run for run in runs if "End of the log" in run]
    assert len(logged) == 1
    assert "line 28\nline 29\n50 %, as a bar shows it\n&lt;/pre&gt;\\x1b[31m&lt;script" in logged[0]
    assert "line 10" not in logged[0]


def test_of_very_many_runs_the_first_open(outputs, monkeypatch, written):
    monkeypatch.setattr(page, "MOST_OPEN", 2)
    for seed in range(3):
        outputs.run("even", seed)
    text = written().html.read_text("utf-8")
    assert text.count('<details class="run"') == 2
    assert text.count("/seed=2</code>") == 1  # the list has them all


def test_a_report_names_the_experiments_of_its_runs(outputs, written):
    for method, name in (("even", "table"), ("opt", EVIL), ("kl", None)):
        path = outputs.run(method) / "environment.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"experiment": name}))
    result = written()
    said = "".join(Page(result.html.read_text("utf-8")).words)
    assert f"Experiments: table (runs: 1), {EVIL} (runs: 1), none (runs: 1)." in said
    assert re.search(r"\|\s*row\s*\|\s*experiment\s*\|", result.page.read_text("utf-8"))
    only = written(experiment="table")
    assert [run.method for section in only.sections for run in section.section.runs] == ["even"]
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
    assert "undecided: opt (+3.10 points, n = 3)" in toy
    assert "robustmd train" in html.unescape(toy)


def test_worst_columns_first_and_headings_sort(report):
    text = report.read_text("utf-8")
    headings = re.findall(r"<th[^>]*><button type=\"button\">([^<]*)</button></th>", text)
    tested = ["worst acc_te", "a acc_te", "b acc_te", "mean acc_te"]
    assert headings[:8] == ["method", *tested, "n", "cfg", "worst acc_tr"]


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


@pytest.mark.slow
def test_the_page_of_a_hundred_runs_is_small(outputs, tmp_path):
    """Eight domains, whose curves are all drawn, and as much text as runs write."""
    names = [f"domain {place}" for place in range(8)]
    log = "2026-01-01 00:00:00 iteration 1000/2000: worst training loss 0.5000\n" * 30
    for row in range(20):
        for seed in range(5):
            losses = [dict.fromkeys(names, 2.0 + np.sin(t / 9) + row / 50) for t in range(60)]
            settings = {"lam": 1.0 + row, **{f"key_{i}": "a value" for i in range(40)}}
            path = outputs.run(
                "opt",
                seed,
                curve=[{n: v + i / 8 for i, (n, v) in enumerate(one.items())} for one in losses],
                train=dict.fromkeys(names, (0.5, 80.0)),
                settings=settings,
                iterations=2000,
                folder=f"{row:08d}",
            )
            noise = np.random.default_rng([row, seed]).dirichlet(np.full(8, 9.0), 400)
            rows = [
                f"{5 * t},{name},{weight:.6f},0.5"
                for t, weights in enumerate(noise)
                for name, weight in zip(names, weights, strict=True)
            ]
            text = "\n".join(["iteration,domain,weight,batch_loss", *rows])
            (path / "weights.csv").write_text(f"{text}\n")
            (path / "train.log").write_text(log)
    page = write_report(outputs.root, tmp_path / "report").html
    assert page.read_text("utf-8").count("<details class=") == 100
    assert page.stat().st_size <= 2_000_000
