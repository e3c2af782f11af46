"""What a reader sees first: the same rows in the page, README.md and the terminal."""

import re

import pytest
from conftest import summary_text


def fill(outputs):
    """even, opt with two λ, of which the larger wins by 30 points, and one individual model."""
    for seed in range(5):
        outputs.run("even", seed, test={"a": (0.5, 95.0), "b": (0.5, 60.0 + seed)})
        for lam, gain in ((0.1, -30.0), (3.0, 30.0)):
            test = {"a": (0.5, 94.9), "b": (0.5, 60.0 + gain + seed + 0.1 * seed)}
            outputs.run("opt", seed, test=test, settings={"lam": lam}, folder=f"{lam}")
    outputs.run("individual", 0, test={"a": (0.5, 99.0), "b": (0.5, 9.0)}, settings={"domain": "a"})


def rows_of(table):
    return [*table.shown.itertuples(index=False, name=None)]


def test_the_methods_by_result_with_intervals_and_verdicts(outputs, written):
    fill(outputs)
    (section,) = written().sections
    assert section.summary.title == "toy · 2 domains · worst: b · n = 1–5 seeds"
    best, even, opt, individual = rows_of(section.summary.table)
    assert best[:3] == ("opt λ=3", "92.2", "+30.2")
    assert best[3:6] == ("····│···●", "[+30.0, +30.4]", "BETTER")
    assert best[6:] == ("−0.1 undecided", "+15.1")
    assert even == ("even", "62.0", "", "", "", "baseline", "", "")
    assert (opt[0], opt[2], opt[5]) == ("opt λ=0.1", "−29.8", "WORSE")
    assert individual[:2] == ("individual a", "9.0")
    assert section.summary.trust.startswith(
        "Trust: paired by seed, Holm over 6 · configurations run: 1 of individual a, 1 of even, "
        "2 of opt · no validation split"
    )


def test_page_text_and_terminal_say_the_same(outputs, written):
    fill(outputs)
    result = written()
    table, terminal = result.sections[0].summary.table, summary_text(result)
    for text in (result.page.read_text("utf-8"), result.html.read_text("utf-8"), terminal):
        for row in rows_of(table):
            for cell in row[:1] + row[5:6]:
                assert all(word in text for word in cell.split())
        places = [text.index(row[1]) for row in rows_of(table)]
        assert places == sorted(places)
        assert "Holm over 6" in text
    ruled = terminal.partition("──")[2].partition("Trust")[0]
    assert max(map(len, ruled.splitlines()[1:])) <= 80
    *_, verdict, _, _ = terminal.splitlines()
    assert verdict.startswith("toy: Worst test accuracy against even: better: opt λ=3")


def test_of_many_rows_the_best_of_each_method_and_the_rest_folded(outputs, written):
    outputs.run("even")
    for i in range(14):
        train = {"a": (0.1 + abs(i - 5), 90.0), "b": (0.1, 90.0)}
        outputs.run("opt", train=train, settings={"lam": 1.0 + i}, folder=f"{i}")
    result = written()
    first = result.sections[0].summary
    assert {row[0] for row in rows_of(first.table)} == {"even", "opt λ=6"}
    assert len(first.rest.shown) == 13
    assert (
        "of 15 rows the one of each method with the lowest worst-case training loss" in first.trust
    )
    assert "13 more rows" in result.html.read_text("utf-8")
    assert "13 more rows" in summary_text(result)


def test_a_study_of_lambda_names_its_best(outputs, written):
    for lam, loss in ((0.1, 0.5), (1.0, 0.2)):
        train = {"a": (loss, 90.0), "b": (0.1, 90.0)}
        test = {"a": (0.5, 80.0 + lam), "b": (0.5, 95.0)}
        outputs.run("opt", train=train, test=test, settings={"lam": lam}, folder=f"{lam}")
    result = written()
    said = "Which λ? Of 2 values for opt, λ = 1 has the lowest worst training loss (0.200)"
    assert result.sections[0].summary.question.startswith(said)
    for text in (result.page.read_text("utf-8"), result.html.read_text("utf-8")):
        assert said in text
    assert said in summary_text(result)


@pytest.mark.parametrize("method", ["even", "erm"])
def test_without_a_pair_the_page_says_what_to_run(outputs, written, method):
    outputs.run(method)
    question = written().sections[0].summary.question
    assert re.match(f"No verdict: it needs {method} and another mixture", question)
