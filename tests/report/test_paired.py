"""Means, spreads and paired differences against values worked by hand."""

import math
from dataclasses import replace
from itertools import product

import pytest
from scipy import special

from robustmd.registry import METHODS
from robustmd.report.estimate import difference_text, estimate, estimate_cell
from robustmd.report.paired import comparisons, paired_sheet
from robustmd.report.quantities import (
    ACCURACY,
    ADJUSTED_TEST_ACCURACY,
    LOSS,
    MEAN_TEST_ACCURACY,
    WORST_TRAIN_LOSS,
)
from robustmd.report.table import build_table


def test_mean_and_sample_standard_deviation():
    # mean 252/3 = 84; squares 16 + 4 + 36 = 56; sqrt(56/2) = 5.2915
    got = estimate([80.0, 82.0, 90.0])
    assert (got.mean, got.n) == (84.0, 3)
    assert got.std == pytest.approx(math.sqrt(28))
    assert estimate_cell(got, ACCURACY).whole() == "84.00 ± 5.29"


@pytest.mark.parametrize(
    ("loss", "text"),
    [(4.0123, "4.012"), (0.0123, "0.012"), (0.00123, "0.0012"), (1e-9, "0.000000"), (0, "0.000")],
)
def test_small_losses_keep_two_digits(loss, text):
    assert estimate_cell(estimate([loss]), LOSS).text == text


def test_differences_are_signed():
    assert [difference_text(ACCURACY, x) for x in (1.25, -0.001)] == ["+1.25", "0.00"]
    assert [difference_text(LOSS, x) for x in (-0.0314, 0)] == ["−0.031", "0.000"]


def test_differences_are_paired_by_seed_over_the_seeds_both_have(outputs, section_of):
    # worst training loss: opt − even = −0.1, −0.3 over seeds 1, 2; seeds 0 and 3 have no partner
    for seed, loss in ((0, 9.0), (1, 1.0), (2, 2.0)):
        outputs.run("even", seed, train={"a": (loss, 80.0), "b": (0.1, 95.0)})
    for seed, loss in ((3, 0.0), (2, 1.7), (1, 0.9)):
        outputs.run("opt", seed, train={"a": (loss, 85.0), "b": (0.1, 92.0)})
    loss, worst, price = comparisons(section_of())
    assert (loss.seeds, loss.quantity) == ((1, 2), WORST_TRAIN_LOSS)
    assert loss.difference.mean == pytest.approx(-0.2)
    # s = 0.141421, t_{0.975, 1} = 12.7062, half width 1.27062
    assert loss.difference.interval == pytest.approx((-1.47062, 1.07062), abs=1e-5)
    assert (loss.word, loss.reference_mean) == ("undecided", 1.5)
    assert loss.margin == pytest.approx(0.075)
    # test accuracy is 5 below training's: a rises by 5 in both, b (even's best) falls by 3
    assert (worst.difference.mean, worst.word) == (5.0, "undecided")  # two pairs decide nothing
    assert price.what == "test accuracy on b, even's best domain"
    assert price.difference.mean == -3.0


def test_one_common_seed_gives_no_interval_and_individual_models_are_not_compared(
    outputs, section_of
):
    for method in ("even", "opt", "individual"):
        outputs.run(method, settings={"domain": "a"} if method == "individual" else None)
    found = comparisons(section_of())
    assert [one.method for one in found] == ["opt"] * 3
    for one in found:
        assert (one.difference.interval, one.word, one.interval_text) == (None, "undecided", "–")


@pytest.mark.parametrize(
    "other",
    [
        {"training": {"learning_rate": 0.1}},
        {"fingerprint": "0" * 64},
        {"settings": {"prior": [0.3, 0.7]}},
    ],
)
def test_only_uniform_even_on_the_same_data_and_training_is_a_partner(outputs, section_of, other):
    outputs.run("even", 0, **other)
    outputs.run("opt", 0)
    assert not any(one.method.startswith("opt") for one in comparisons(section_of()))


def test_words_go_by_p_adjusted_over_the_table(outputs, section_of):
    for seed in range(6):
        outputs.run("even", seed, train={"a": (1.0, 80.0), "b": (0.1, 95.0)})
        train = {"a": (0.9 - seed / 100, 82.0 + seed), "b": (0.1, 95.0 + (-1) ** seed)}
        outputs.run("opt", seed, train=train)
    loss, worst, price = comparisons(section_of())
    assert (loss.p_exact, worst.p_exact, price.p_exact) == (2 / 64, 2 / 64, 1.0)
    # 2, 3, … 7 points in steps of an image of 40, 2.5, which is more than s = 1.87
    t = 4.5 * 6**0.5 / 2.5
    assert worst.difference.p == pytest.approx(2 * special.stdtr(5, -t))
    assert loss.p_holm == pytest.approx(3 * loss.difference.p)
    assert worst.p_holm == pytest.approx(2 * worst.difference.p)
    assert (loss.word, worst.word, price.word) == ("better", "better", "undecided")
    sheet = paired_sheet([loss, worst, price], section_of())
    titles = [column.title for column in sheet.columns]
    assert titles[-2:] == ["Holm p", "verdict"]
    assert [row.cells[-2].text for row in sheet.rows] == ["<0.0001", "0.014", "1.00"]


def test_each_method_more_takes_its_share_of_the_level(outputs, section_of):
    def words(*methods):
        for method, seed in product(methods, range(5)):
            gain = 0.0 if method == "even" else 0.1 + seed * 0.05
            outputs.run(method, seed, train={"a": (1.0 - gain, 80.0), "b": (0.1, 95.0)})
        found = comparisons(section_of())
        return {one.word for one in found if one.quantity == WORST_TRAIN_LOSS}

    assert words("even", "opt") == {"better"}
    assert words("kl", "ot", "cvar", "term") == {"undecided"}  # with opt, of five methods


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (10, "undecided: resolution is 10 points"),
        (200, "undecided: resolution is 0.5 points"),
        (1000, "equivalent"),
    ],
)
def test_equal_accuracies_are_equivalent_only_where_they_are_fine_enough(
    outputs, section_of, size, said
):
    for method, seed in product(("even", "opt"), range(3)):
        outputs.run(method, seed, sizes={"a": size, "b": 1000})
    loss, worst, price = comparisons(section_of())
    assert (worst.said, loss.said, price.said) == (said, "equivalent", "equivalent")


def test_mean_and_adjusted_average_and_their_resolutions(outputs, section_of):
    outputs.run(test={"a": (0.5, 80.0), "b": (0.5, 90.0)}, sizes={"a": 10, "b": 30})
    section = section_of()
    table = build_table(section)
    *_, mean, adjusted = table.rows[0].cells
    assert (mean.mean, adjusted.mean) == (85.0, 87.5)
    assert table.columns[-1] == ADJUSTED_TEST_ACCURACY
    assert "weighted by the sizes of their training sets" in table.caption
    (one,) = section.groups[0].selected
    assert MEAN_TEST_ACCURACY.resolution(one) == 5.0  # 100/10 of half the mean
    assert ADJUSTED_TEST_ACCURACY.resolution(one) == pytest.approx(2.5)  # 1 of 40 images


@pytest.mark.parametrize(
    ("methods", "asked", "baseline"),
    [
        (["erm", "individual", "opt"], None, "erm"),
        (["individual", "opt"], None, "individual"),
        (["even", "erm", "opt"], "erm", "erm"),
        (["even", "opt", "erm"], "opt", "opt"),
    ],
)
def test_the_baseline_is_what_is_asked_for_or_the_first_there_is(
    outputs, section_of, methods, asked, baseline
):
    for method, seed in product(methods, range(2)):
        outputs.run(method, seed, settings={"domain": "a"} if method == "individual" else None)
    section = replace(section_of(), asked=asked)
    found = comparisons(section)
    assert {one.reference.split()[0] for one in found} == {baseline}
    assert baseline not in {one.method for one in found}
    assert f"{baseline}'s best domain" in found[2].what
    assert f"method − {baseline}" in paired_sheet(found, section).columns[0].title


def test_a_method_becomes_a_baseline_by_what_its_decorator_says(outputs, section_of, monkeypatch):
    for method in ("opt", "topk"):
        outputs.run(method, 0)
    assert not comparisons(section_of())
    monkeypatch.setitem(METHODS._flags, "topk", {**METHODS._flags["topk"], "baseline": 4})
    section = section_of()
    assert (section.baseline, {one.method for one in comparisons(section)}) == ("topk", {"opt"})
    assert "the first of even, erm, individual, topk here" in paired_sheet([], section).caption
