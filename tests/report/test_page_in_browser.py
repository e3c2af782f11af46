"""index.html in Chromium: at every width, by keyboard, without a script, and read by axe-core."""

import shutil

import pytest

from robustmd.report.report import write_report
from robustmd.report.style import COLOURS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed here")
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
WORST = {"even": 80.0, "opt": 95.0, "kl": 85.0}


@pytest.fixture(scope="module")
def browser():
    """One start for all tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM)
        yield found
        found.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of a page with three methods, seven curves each."""
    from conftest import OutputsBuilder

    root = tmp_path_factory.mktemp("browser")
    outputs = OutputsBuilder(root / "outputs")
    curve = [{"a": 3.0 / 2**i, "b": 2.0 / 2**i} for i in range(4)]
    for method, worst in WORST.items():
        last = {"a": (0.125, 99.0), "b": (0.125, 99.0)}
        test = {"a": (0.5, 99.0), "b": (0.5, worst)}
        for seed in range(2):
            path = outputs.run(method, seed, curve=curve, train=last, test=test)
            (path / "train.log").write_text("iteration 100\n")
    return write_report(root / "outputs", root / "report").html.as_uri()


@pytest.fixture
def opened(browser, address):
    """The page, opened with given settings; it may say nothing and ask for nothing."""
    contexts, said = [], []

    def made(width=800, **settings):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **settings))
        page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda one: said.append(one.url) if one.url != address else None)
        page.goto(address)
        return page

    yield made
    for context in contexts:
        context.close()
    assert said == []


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (800, "dark"), (1400, "light")])
def test_it_fits_and_is_accessible(opened, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = opened(width, color_scheme=scheme)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    panels = page.locator("svg[data-x]")
    assert all(panel.bounding_box()["width"] <= width - 16 for panel in panels.all())
    first = page.locator("table").first
    second = first.locator("thead th").nth(1)
    shown = second.bounding_box()
    assert second.inner_text() == "worst acc_te"
    assert shown["x"] + shown["width"] <= width
    found = axe.run(page, options={"runOnly": LEVELS}).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_a_table_sorts_by_keyboard_and_methods_can_be_hidden(opened):
    page = opened()
    names = lambda: page.locator("table").first.locator("tbody th:visible").all_inner_texts()  # noqa: E731
    page.get_by_role("button", name="worst acc_te").first.focus()
    page.keyboard.press("Enter")
    assert names() == ["opt", "kl", "even"]
    page.keyboard.press("Space")
    assert names() == ["even", "kl", "opt"]
    curves = page.locator("[data-line='kl']:visible").count()
    page.locator(".methods").get_by_text("kl").press("Enter")
    assert names() == ["even", "opt"]
    assert page.locator("[data-line='kl']:visible").count() == 0 < curves
    assert page.locator(".run:visible").count() == 4
    page.locator(".methods").get_by_text("kl").press("Enter")
    assert page.locator("[data-line='kl']:visible").count() == curves


def test_curves_show_their_values_and_can_be_toggled(opened):
    page = opened()
    figure = page.locator("figure").first
    panel, keys = figure.locator("svg[data-x]").first, figure.locator(".keys")
    said = lambda: keys.inner_text().split()  # noqa: E731
    panel.focus()
    for iteration, value in (("0", "3.00"), ("25", "1.50"), ("50", "0.750")):
        page.keyboard.press("ArrowRight")
        assert said() == ["even", value, "opt", value, "kl", value, "iteration", iteration]
    keys.get_by_role("button", name="opt").press("Enter")
    assert figure.locator("[data-line='opt']:visible").count() == 0
    panel.scroll_into_view_if_needed()
    box = panel.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + box["height"] / 2)
    assert said() == ["even", "0.125", "opt", "kl", "0.125", "iteration", "100"]
    page.mouse.move(1, 1)
    assert said() == ["even", "opt", "kl"]


def test_a_run_opens_by_keyboard(opened):
    page = opened()
    run = page.locator(".run").first
    assert not run.get_by_text("iteration 100").is_visible()
    run.locator("summary").press("Enter")
    assert run.get_by_text("iteration 100").is_visible()
    assert run.get_by_text("learning_rate: 0.03").is_visible()


def test_it_is_whole_without_a_script(opened):
    page = opened(java_script_enabled=False)
    assert page.get_by_text("Methods shown").count() == 1
    assert not page.get_by_text("Methods shown").is_visible()
    assert page.locator("[data-line='opt']").first.is_visible()
    assert page.locator("figure .keys").first.inner_text().split() == ["even", "opt", "kl"]
    assert page.locator("figure button").count() == 0


CONTRASTS = """colours => {
  const context = document.createElement("canvas").getContext("2d", {willReadFrequently: true})
  const page = getComputedStyle(document.body).backgroundColor
  const paint = (colour, filter, alpha) => {
    context.filter = filter
    context.globalAlpha = alpha
    context.fillStyle = colour
    context.fillRect(0, 0, 1, 1)
  }
  const luminance = () => {
    const part = x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map(x => part(x / 255))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const contrast = (one, colour) => {
    let alpha = getComputedStyle(one).strokeOpacity
    for (let up = one; up.tagName !== "svg"; up = up.parentNode)
      alpha *= getComputedStyle(up).opacity
    const {filter} = getComputedStyle(one.closest("svg"))
    const grounds = one.closest("[data-x]") ? [[page, "none"], ["#fff", filter]] : [[page, "none"]]
    return Math.min(...grounds.map(([ground, own]) => {
      paint(ground, own, 1)
      const below = luminance()
      paint(colour, filter, alpha)
      const [low, high] = [below, luminance()].sort((a, b) => a - b)
      return (high + 0.05) / (low + 0.05)
    }))
  }
  const texts = [...document.querySelectorAll("svg text")]
  const lines = [...document.querySelectorAll("svg [data-line] path, .run polyline")]
  const painted = colours.map(colour => {
    lines[0].setAttribute("stroke", colour)
    return contrast(lines[0], getComputedStyle(lines[0]).stroke)
  })
  return [
    texts.map(one => contrast(one, getComputedStyle(one).fill)),
    [...painted, ...lines.map(one => contrast(one, getComputedStyle(one).stroke))],
  ]
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_and_lines_of_curves_stand_out(opened, scheme):
    """By WCAG's 1.4.3 and 1.4.11; axe does not look into an SVG."""
    page = opened(color_scheme=scheme)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    texts, lines = page.evaluate(CONTRASTS, [colour.lower() for colour in COLOURS])
    assert len(texts) > 50
    assert len(lines) > 20
    assert min(texts) >= 4.5
    assert min(lines) >= 3


def test_paper_has_every_column(opened):
    page = opened(703)  # A4 without its margins, although upright: the names here are short
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 703
    for table in page.locator("table:visible").all():
        assert table.bounding_box()["width"] <= 703
