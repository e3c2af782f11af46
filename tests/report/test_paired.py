"""Means, spreads and paired differences against values worked by hand."""

import math
from itertools import product

import pytest
from scipy import special

from robustmd.registry import METHODS, METRICS
from robustmd.report.tables import differences, results, signed, with_spread

ACCURACY, LOSS = METRICS["accuracy"], METRICS["loss"]
WORST_LOSS = ("worst", "train", "loss")


@pytest.fixture
def compared(study_of):
    """The comparisons of the only study, a dict each; `words`: what a reader is told."""

    def made(**options):
        study = study_of(**options)
        found = study.comparisons
        if found.empty:
            return []
        words = differences(study).shown["verdict"]
        return found.assign(words=words).to_dict("records")

    return made


@pytest.mark.parametrize(
    ("loss", "text"),
    [(4.0123, "4.012"), (0.0123, "0.012"), (0.00123, "0.0012"), (1e-9, "0.000000"), (0, "0.000")],
)
def test_small_losses_keep_two_digits(loss, text):
    assert with_spread(LOSS, loss) == text


def test_differences_are_signed():
    assert [signed(ACCURACY, x) for x in (1.25, -0.001)] == ["+1.25", "0.00"]
    assert [signed(LOSS, x) for x in (-0.0314, 0)] == ["−0.031", "0.000"]


def test_differences_are_paired_by_seed_over_the_seeds_both_have(outputs, compared):
    # worst training loss: opt − even = −0.1, −0.3 over seeds 1, 2; seeds 0 and 3 have no partner
    for seed, loss in ((0, 9.0), (1, 1.0), (2, 2.0)):
        outputs.run("even", seed, train={"a": (loss, 80.0), "b": (0.1, 95.0)})
    for seed, loss in ((3, 0.0), (2, 1.7), (1, 0.9)):
        outputs.run("opt", seed, train={"a": (loss, 85.0), "b": (0.1, 92.0)})
    loss, worst, price = compared()
    assert (loss["seeds"], loss["name"]) == ("1 2", WORST_LOSS)
    assert loss["difference"] == pytest.approx(-0.2)
    # s = 0.141421, t_{0.975, 1} = 12.7062, half width 1.27062
    ends = loss["ci95_low"], loss["ci95_high"]
    assert ends == pytest.approx((-1.47062, 1.07062), abs=1e-5)
    assert (loss["verdict"], loss["reference_mean"]) == ("undecided", 1.5)
    assert loss["margin"] == pytest.approx(0.075)
    # test accuracy is 5 below training's: a rises by 5 in both, b (even's best) falls by 3
    assert (worst["difference"], worst["verdict"]) == (5.0, "undecided")  # two pairs decide nothing
    assert price["quantity"] == "test accuracy on b, even's best domain"
    assert price["difference"] == -3.0


def test_one_common_seed_gives_no_interval_and_individual_models_are_not_compared(
    outputs, compared
):
    for method in ("even", "opt", "individual"):
        outputs.run(method, settings={"domain": "a"} if method == "individual" else None)
    found = compared()
    assert [one["method"] for one in found] == ["opt"] * 3
    for one in found:
        assert math.isnan(one["ci95_low"])
        assert one["verdict"] == "undecided"


@pytest.mark.parametrize(
    "other",
    [
        {"training": {"learning_rate": 0.1}},
        {"fingerprint": "0" * 64},
        {"settings": {"prior": [0.3, 0.7]}},
    ],
)
def test_only_uniform_even_on_the_same_data_and_training_is_a_partner(outputs, compared, other):
    outputs.run("even", 0, **other)
    outputs.run("opt", 0)
    assert not any(one["method"].startswith("opt") for one in compared())


def test_words_go_by_p_adjusted_over_the_table(outputs, compared, study_of):
    for seed in range(6):
        outputs.run("even", seed, train={"a": (1.0, 80.0), "b": (0.1, 95.0)})
        train = {"a": (0.9 - seed / 100, 82.0 + seed), "b": (0.1, 95.0 + (-1) ** seed)}
        outputs.run("opt", seed, train=train)
    loss, worst, price = compared()
    assert tuple(one["p_exact"] for one in (loss, worst, price)) == (2 / 64, 2 / 64, 1.0)
    # 2, 3, … 7 points in steps of an image of 40, 2.5, which is more than s = 1.87
    t = 4.5 * 6**0.5 / 2.5
    assert worst["p_t"] == pytest.approx(2 * special.stdtr(5, -t))
    assert loss["p_holm"] == pytest.approx(3 * loss["p_t"])
    assert worst["p_holm"] == pytest.approx(2 * worst["p_t"])
    assert tuple(one["verdict"] for one in (loss, worst, price)) == (
        "better",
        "better",
        "undecided",
    )
    shown = differences(study_of()).shown
    assert [*shown][-2:] == ["Holm p", "verdict"]
    assert [*shown["Holm p"]] == ["<0.0001", "0.014", "1.00"]


def test_each_method_more_takes_its_share_of_the_level(outputs, compared):
    def words(*methods):
        for method, seed in product(methods, range(5)):
            gain = 0.0 if method == "even" else 0.1 + seed * 0.05
            outputs.run(method, seed, train={"a": (1.0 - gain, 80.0), "b": (0.1, 95.0)})
        return {one["verdict"] for one in compared() if one["name"] == WORST_LOSS}

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
    outputs, compared, size, said
):
    for method, seed in product(("even", "opt"), range(3)):
        outputs.run(method, seed, sizes={"a": size, "b": 1000})
    words = [one["words"] for one in compared()]
    assert words == ["equivalent", said, "equivalent"]


def test_mean_and_adjusted_average_and_their_resolutions(outputs, study_of):
    outputs.run(test={"a": (0.5, 80.0), "b": (0.5, 90.0)}, sizes={"a": 10, "b": 30})
    study = study_of()
    table = results(study)
    assert [*table.raw][-4:-1:2] == ["mean_test_accuracy_mean", "adjusted_test_accuracy_mean"]
    assert table.raw.iloc[0, [-4, -2]].tolist() == [85.0, 87.5]
    assert "weighted by the sizes of their training sets" in table.caption
    mean = "mean", "test", "accuracy"
    assert study.resolution(mean, study.runs.index) == 5.0  # 100/10 of half the mean


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
    outputs, compared, study_of, methods, asked, baseline
):
    for method, seed in product(methods, range(2)):
        outputs.run(method, seed, settings={"domain": "a"} if method == "individual" else None)
    found = compared(asked=asked)
    assert {one["reference"].split()[0] for one in found} == {baseline}
    assert baseline not in {one["method"] for one in found}
    assert f"{baseline}'s best domain" in found[2]["quantity"]
    assert f"method − {baseline}" in differences(study_of(asked=asked)).shown


def test_a_method_becomes_a_baseline_by_what_its_decorator_says(
    outputs, compared, study_of, monkeypatch
):
    for method in ("opt", "topk"):
        outputs.run(method, 0)
    assert not compared()
    monkeypatch.setitem(METHODS._flags, "topk", {**METHODS._flags["topk"], "baseline": 4})
    assert {(one["method"], one["reference"]) for one in compared()} == {("opt", "topk")}
    caption = differences(study_of()).caption
    assert "the first of even, erm, individual, topk here" in caption
