"""The static front: which runs are points, which is best, and what the sentence says."""

import pytest

from robustmd.report.figures import static_front
from robustmd.report.front import front


def losses(a, b):
    return {"a": (a, 50.0), "b": (b, 50.0)}


def fill(outputs, seeds=(0, 1, 2)):
    """Worst training losses 0.9, 0.5, 0.4 at p_a = 0, 0.5, 1 and 0.3 (opt), 0.8 (topk)."""
    for seed in seeds:
        e = seed / 1000
        fixed = {(0.0, 1.0): (0.9, 0.1), (0.5, 0.5): (0.5, 0.3), (1.0, 0.0): (0.2, 0.4)}
        for i, (prior, (a, b)) in enumerate(fixed.items()):
            settings = {"prior": list(prior)}
            outputs.run("even", seed, train=losses(a + e, b + e), settings=settings, folder=f"{i}")
        outputs.run("opt", seed, train=losses(0.3 + e, 0.2 + e), settings={"lam": 1.0})
        outputs.run("topk", seed, train=losses(0.8 + e, 0.2 + e), settings={"k": 1})


@pytest.fixture
def drawn_of(study_of):
    return lambda: static_front(study_of())


def test_the_best_fixed_weights_are_compared_with_learned_ones_by_seed(outputs, study_of, csv_rows):
    fill(outputs)
    for seed in range(3):  # uniform even is a point, and counts once
        outputs.run("even", seed, train=losses(0.6, 0.3), settings={"prior": None}, folder="u")
    outputs.run("erm", 0)  # fixed weights that are no key of it: no point
    other = {"learning_rate": 0.5}  # trained in another way: no point
    outputs.run("even", 0, settings={"prior": [0.3, 0.7]}, training=other, folder="other")
    found = front(study_of())
    assert list(found.points) == [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    assert found.best == (1.0, 0.0)
    for part in (
        "best of 3 fixed weights has p = (1.00, 0.00) over a, b",
        "0.401 nats (n = 3)",
        "of 2 learned methods 1 are better or equivalent and 1 worse",
        "opt learning_rate=0.03 −0.100 [−0.100, −0.100] better",
        "topk learning_rate=0.03 +0.400 [+0.400, +0.400] worse",
    ):
        assert part in found.answer
    rows = csv_rows(found.csv)
    assert [row["kind"] for row in rows] == ["fixed"] * 3 + ["learned"] * 2
    assert [row["best_fixed"] for row in rows[:3]] == ["no", "no", "yes"]
    assert float(rows[0]["a_train_loss_mean"]) == pytest.approx(0.901)
    assert float(rows[3]["difference_to_best"]) == pytest.approx(-0.1)


def test_two_fixed_weights_are_no_front(outputs, study_of):
    outputs.run("even", 0, settings={"prior": [0.0, 1.0]})
    outputs.run("even", 0, settings={"prior": [1.0, 0.0]}, folder="1")
    outputs.run("opt", 0)
    assert front(study_of()) is None


def test_the_figure_says_what_marker_and_bars_are(outputs, drawn_of):
    fill(outputs)
    drawn = drawn_of()
    assert "Markers: mean over n = 3 seeds; bars: ± sample standard deviation" in drawn.caption
    assert "which favours them" in drawn.caption
    train, test = drawn.figure.axes
    line = next(one for one in train.lines if len(one.get_xdata()) == 3)
    assert line.get_xdata() == pytest.approx([0.901, 0.501, 0.201])
    assert line.get_ydata() == pytest.approx([0.101, 0.301, 0.401])
    assert (train.get_xlabel(), train.get_ylabel()) == ("on a", "on b")
    assert test.get_title() == "test loss [nats]"
    low, high = train.get_xlim()
    assert 0 < low < 0.201
    assert high > 0.901


def test_more_domains_are_drawn_as_worst_against_mean(outputs, drawn_of):
    for i, prior in enumerate(([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5])):
        train = {"a": (0.1 * (i + 1), 50.0), "b": (0.5, 50.0), "c": (0.9, 50.0)}
        outputs.run("even", 0, train=train, settings={"prior": prior}, folder=f"{i}")
    drawn = drawn_of()
    axis = drawn.figure.axes[0]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("mean over the domains", "worst domain")
    assert "n = 1 seed: no bars" in drawn.caption
