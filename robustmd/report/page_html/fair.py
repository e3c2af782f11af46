"""The fair protocol on the page: results, paired differences, budget and choices."""

from robustmd.report.fair import Fair
from robustmd.report.fair_formats import BUDGET_HEAD, PAIRED, budget_caption, budget_rows
from robustmd.report.page_html.markup import Markup, el, join
from robustmd.report.page_html.results import results
from robustmd.report.page_html.runs import plain_table
from robustmd.report.paired_table import paired_caption
from robustmd.report.table import WARNED


def fair_results(fair: Fair | None) -> Markup:
    """Nothing where there is none."""
    if fair is None:
        return Markup("")
    warned = [el("li", line) for line in fair.table.warnings]
    return join(
        el("h3", "The fair protocol"),
        results(fair.table),
        join(el("p", f"{WARNED} Warnings"), el("ul", *warned)) if warned else "",
        _budget(fair),
        _differences(fair),
    )


def _budget(fair: Fair) -> Markup:
    rows = []
    for name, *counts, seconds, chosen in budget_rows(fair):
        numbers = [el("td", text, class_="num") for text in (*counts, seconds)]
        rows.append((name, *numbers, el("td", chosen, class_="wrap")))
    table = plain_table(BUDGET_HEAD, rows, "budget and choices of the fair protocol")
    return join(table, el("p", budget_caption(fair), class_="dim"))


def _differences(fair: Fair) -> Markup:
    if not fair.comparisons:
        return Markup("")
    rows = [
        (
            f"{one.method} − {one.reference}",
            one.what,
            el("td", f"{one.mean_text} {one.unit}", class_="num", data_value=one.difference.mean),
            one.interval_text,
            one.p_text,
            one.difference.n,
            el("td", el("strong", one.said, class_=one.word)),
        )
        for one in fair.comparisons
    ]
    baseline = fair.comparisons[0].baseline
    head = (f"method − {baseline}", "quantity", "difference", "95 % interval", "p", "n", "word")
    table = plain_table(head, rows, f"paired differences to {baseline} under the fair protocol")
    text = paired_caption(baseline, fair.table.selection, PAIRED)
    return join(table, el("p", text, class_="dim"))
