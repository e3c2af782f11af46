"""The forest plot of paired differences to the baseline, as a table with a drawn column."""

from collections.abc import Sequence

from robustmd.report.page_html.markup import Markup, el, join, scrolling
from robustmd.report.page_html.words import gains
from robustmd.report.paired import MEAN, Comparison
from robustmd.report.result import SectionReport


def forest(one: SectionReport) -> Markup:
    """A row a method: the worst domain's gain and the price on the baseline's best domain, each on
    a scale of its own; empty where nothing can be compared."""
    rows = gains(one)
    if not rows:
        return Markup("")
    prices = {c.method: c for c in one.comparisons if c.is_price}
    is_mean = any(price.note == MEAN for price in prices.values())
    baseline = rows[0].baseline
    scale, paid = _scale(rows), _scale(list(prices.values()) or rows)
    head = el(
        "tr",
        *(
            el("th", text, scope="col")
            for text in (
                f"method − {baseline}",
                "worst test accuracy",
                "",
                f"price: {MEAN if is_mean else f'{baseline}’s best domain'}",
                "",
            )
        ),
    )
    body = []
    for row in rows:
        cells = [el("th", f"{row.method} (n = {row.difference.n})", scope="row")]
        cells += _cells(row, scale, "worst test accuracy")
        if row.method in prices:
            price = prices[row.method]
            cells += _cells(
                price, paid, f"price, {MEAN if is_mean else f'on {price.quantity.domain}'}"
            )
        body.append(el("tr", *cells))
    legend = (
        "Points of test accuracy, paired by seed. Dot: mean; line: 95 % t interval (none where "
        f"n < 2); gray: within ±{rows[0].margin:g} points, which counts as equivalent. The "
        f"drawings reach ±{scale:.3g} and ±{paid:.3g} points; "
        "longer lines are cut there."
    )
    label = f"paired differences to {baseline} in test accuracy"
    table = el("table", el("thead", head), el("tbody", *body), class_="forest")
    return join(scrolling(table, label), el("p", legend, class_="dim"))


def _scale(rows: Sequence[Comparison]) -> float:
    """What a drawing reaches to, in points: all intervals, but no more than four times the largest
    mean, so that two seeds that disagree do not make the rest invisible."""
    means = max(max(abs(one.difference.mean), one.margin) for one in rows)
    ends = [abs(end) for one in rows for end in one.difference.interval or ()]
    return 1.15 * min(max([means, *ends]), 4 * means)


def _cells(one: Comparison, scale: float, name: str) -> list[Markup]:
    interval = f" {one.interval_text}" if one.difference.interval else ""
    words = f"{one.mean_text}{interval} "
    return [
        el("td", _strip(one, scale), data_name=name),
        el("td", words, el("strong", one.said, class_=one.word)),
    ]


def _strip(one: Comparison, scale: float) -> Markup:
    """Coordinates are percentages, so that it fits any width."""

    def at(value: float) -> str:
        return f"{50 + 50 * value / scale:.2f}%"

    margin = one.margin
    gray = el(
        "rect",
        x=at(-margin),
        y="0",
        width=f"{100 * margin / scale:.2f}%",
        height="100%",
        class_="range",
    )
    axis = el("line", x1="50%", x2="50%", y1="0", y2="100%", class_="axis")
    line = Markup("")
    if one.difference.interval is not None:
        low, high = map(at, one.difference.interval)
        line = el("line", x1=low, x2=high, y1="50%", y2="50%", class_="interval")
    dot = el("circle", cx=at(one.difference.mean), cy="50%", r="5", class_="mean")
    return el("svg", join(gray, axis, line, dot), aria_hidden="true", class_=one.word)
