"""The figures: what is drawn, for which runs, and that nothing lies over anything."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from inside import assert_inside
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from robustmd.report.figures import HUES, contrast, draw_all, figure_style, row_styles, shades
from robustmd.report.summary import sweeps

CURVE = [{"a": 2.0, "b": 3.0}, {"a": 1.5, "b": 1.0}]
SECONDS = {"training": 10.0, "adversary": 1.0, "data": 2.0, "measurement": 3.0, "total": 14.5}


@pytest.fixture
def drawn_of(study_of):
    return lambda spread="std": {one.name: one for one in draw_all(study_of(spread=spread))}


@pytest.fixture
def first_line(drawn_of):
    """The values of the only line in the first panel of a figure, [M, 2]."""

    def values(name):
        (line,) = drawn_of()[name].figure.axes[0].lines
        return line.get_xydata()

    return values


def weights_of(path, rows):
    lines = ["iteration,domain,weight,batch_loss"]
    lines += [f"{t},{name},{p},0.5" for t, by_name in rows for name, p in by_name.items()]
    (path / "weights.csv").write_text("\n".join(lines) + "\n", "utf-8")


def test_the_largest_loss_and_the_gap_at_every_measurement(outputs, drawn_of):
    outputs.run(curve=CURVE, train={"a": (0.5, 80.0), "b": (0.7, 90.0)})
    drawn = drawn_of()
    (worst,) = drawn["worst_case_training_loss"].figure.axes[0].lines
    assert worst.get_xydata().tolist() == [[0, 3.0], [50, 1.5], [100, 0.7]]
    signed, gap = (axis.lines[0].get_ydata() for axis in drawn["discrepancy"].figure.axes)
    np.testing.assert_allclose(signed, [-1.0, 0.5, -0.2])
    np.testing.assert_allclose(gap, np.abs(signed))


def test_a_measurement_without_all_domains_is_left_out(outputs, first_line):
    outputs.run(curve=[{"a": 2.0, "b": 3.0}, {"a": 1.5}, {"a": float("nan"), "b": 1.0}, {}])
    assert first_line("worst_case_training_loss")[:, 0].tolist() == [0, 100]


def test_a_broken_weights_file_leaves_the_rest(outputs, drawn_of):
    path = outputs.run(curve=CURVE)
    (path / "weights.csv").write_text("no table", "utf-8")
    assert set(drawn_of()) == {"worst_case_training_loss", "domain_accuracy", "discrepancy"}


def test_a_line_is_of_the_iterations_that_all_seeds_have(outputs, first_line):
    outputs.run("even", 0, curve=CURVE)
    outputs.run("even", 1, curve=CURVE[:1])
    assert first_line("worst_case_training_loss")[:, 0].tolist() == [0, 100]


def test_one_seed_has_no_band(outputs, drawn_of):
    outputs.run(curve=CURVE)
    drawn = drawn_of("ci95")["worst_case_training_loss"]
    assert not drawn.figure.axes[0].collections
    assert "n = 1 seed: no band." in drawn.caption


def test_individuals_and_mixtures_apart_and_together(outputs, drawn_of):
    for seed in (0, 1):
        outputs.run("even", seed, curve=CURVE)
        outputs.run("individual", seed, curve=CURVE, settings={"domain": "a"})
        for i, lam in enumerate((0.1, 1.0)):
            outputs.run("opt", seed, curve=CURVE, settings={"lam": lam}, folder=str(i))
    drawn = drawn_of("ci95")
    apart = drawn["worst_case_training_loss"]
    left, right = apart.figure.axes
    assert (left.get_title(), right.get_title()) == ("individual models", "mixtures")
    assert (len(left.lines), len(right.lines)) == (1, 3)
    assert right.get_yscale() == "log"
    assert "n = 2 seeds; band: ± half width of the 95 % t interval" in apart.caption
    assert "lambda_worst" in drawn
    looks = {(line.get_linestyle(), line.get_marker()) for line in right.lines}
    assert len(looks) == 3, "told apart without colour"


def test_black_and_dashed_is_the_baselines_alone(outputs, study_of):
    outputs.run("even")
    for lam in (0.1, 1.0, 10.0):
        outputs.run("opt", settings={"lam": lam}, folder=f"{lam}")
    even, *of_opt = row_styles(study_of()).values()
    assert (even["color"], even["linestyle"]) == ("#000000", "--")
    assert [one["color"] for one in of_opt] == shades(HUES[0], 3)
    levels = [contrast(np.array(to_rgb(one["color"]))) for one in of_opt]
    assert 3 <= levels[0] < levels[1] < levels[2]
    assert "--" not in [one["linestyle"] for one in of_opt]


@pytest.mark.parametrize(("width", "inches"), [("column", 3.25), ("text", 6.75)])
def test_for_a_paper_figures_are_as_wide_as_its_text(outputs, study_of, width, inches):
    many(outputs, ["even", "opt"], ["mnist", "svhn"], 2)
    for one in draw_all(study_of(), width):
        assert one.figure.get_figwidth() == inches
        assert {text.get_fontsize() for text in one.figure.findobj(Text)} == {7.5}
        assert_apart(one)


def test_sweeps_of_lambda_are_named_by_what_else_differs(outputs, study_of):
    for lam in (0.1, 1.0):
        for c in ("auto", "centred"):
            outputs.run("opt", 0, settings={"lam": lam, "c": c}, folder=f"{lam}{c}")
    outputs.run("kl", 0, settings={"lam": 1.0})  # no sweep
    assert [*sweeps(study_of())] == ["opt c=auto", "opt c=centred"]


def test_of_many_rows_even_and_the_best_are_drawn(outputs, drawn_of):
    outputs.run("even", train={"a": (99.0, 50.0), "b": (99.0, 50.0)})
    for i in range(20):
        outputs.run(f"m{i:02d}", train={"a": (1.0 + i, 50.0), "b": (0.5, 50.0)})
    drawn = drawn_of()["worst_case_training_loss"]
    assert len(drawn.figure.axes[0].lines) == 6
    assert "6 of 21 rows are drawn" in drawn.caption


def many(outputs, methods, domains, seeds=1):
    """Every method with weights that move and a λ."""
    train = {name: (0.01 * (k + 1), 99.0 - k) for k, name in enumerate(domains)}
    curve = [{name: 2.0 / (1 + i) + 0.01 * k for k, name in enumerate(domains)} for i in range(3)]
    regret = {"measured": 0.01, "bound": 0.2, "mu": 1.0}
    extra = {"seconds": SECONDS, "regret": regret}
    for i, method in enumerate(methods):
        told = {"settings": {"lam": 0.1 * (i + 1)} if method != "even" else {}, "extra": extra}
        for seed in range(seeds):
            path = outputs.run(method, seed, train=train, curve=curve, folder=f"{i:08x}", **told)
            tilt = [1.0 + k * (method != "even") * (i + 1) / 10 for k in range(len(domains))]
            last = {name: t / sum(tilt) for name, t in zip(domains, tilt, strict=True)}
            weights_of(path, [(1, dict.fromkeys(domains, 1 / len(domains))), (90, last)])


STRANGE = ["even", "opt", "a&b_<i>", "$x", "_hidden", "été"]
ANGLES = [f"rotate_{k}_sigma_12" for k in range(40)]
TREES = {
    "twelve_methods_eight_domains": (
        [*STRANGE, *(f"method number {i}" for i in range(6))],
        [f"domain {k}" for k in range(8)],
        2,
    ),
    "forty_domains": (["even", "opt", "method " * 8], ANGLES, 2),
    "one_method": (["opt"], ["mnist", "svhn"], 1),
    "many_lambda": (["even", *["opt"] * 7, *["ot"] * 4], ["mnist", "svhn"], 2),
    "long_names": (["even", "a_method_" * 9], ["a domain with a long name " * 2, "b" * 40], 2),
}


@pytest.mark.parametrize("tree", TREES)
def test_no_text_lies_on_another_or_is_cut_off(outputs, tree, drawn_of):
    many(outputs, *TREES[tree])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = drawn_of()
        for one in drawn.values():
            assert_apart(one)
    assert {"worst_case_training_loss", "weights", "running_time"} <= set(drawn)


EVERY = {
    3: "worst_case_training_loss paired_differences static_front discrepancy "
    "best_and_worst_training_loss weights lambda_worst domain_accuracy running_time",
    2: "static_front",
    9: "weights discrepancy static_front",
}


def unlike(outputs, count):
    """Seeds that disagree, weights that end on one domain, a worst loss far above the best, and a
    method that fits its domains to a loss of 0."""
    domains = [f"d{k}" for k in range(count)]
    extra = {"seconds": SECONDS, "regret": {"measured": 0.01, "bound": 0.2, "mu": 1.0}}
    priors = [[float(k == place) for k in range(count)] for place in range(2)]
    rows = [("even", {"prior": prior}) for prior in [None, *priors]]
    rows += [("opt", {"lam": lam}) for lam in (0.01, 1.0)]
    rows += [("individual", {"domain": "d0"}), ("kl", {"lam": 1.0}), ("minimax", {})]
    for place, (method, settings) in enumerate(rows):
        told = {"settings": settings, "extra": extra, "folder": f"{place:08x}"}
        for seed in range(2):
            scale = 0.0 if method == "kl" else 10.0 ** (seed - place)
            losses = {name: scale * 30.0**k for k, name in enumerate(domains[:3])}
            losses = {name: losses.get(name, scale) for name in domains}
            train = {name: (loss, 90.0 - 40 * seed) for name, loss in losses.items()}
            curve = [{name: 5 * loss for name, loss in losses.items()} for _ in range(3)]
            path = outputs.run(method, seed, train=train, curve=curve, **told)
            first = dict.fromkeys(domains, 1 / count)
            last = {name: float(k == seed) for k, name in enumerate(domains)}
            weights_of(path, [(1, first), (90, first if method == "even" else last)])


@pytest.mark.parametrize(("count", "spread"), [(3, "ci95"), (2, "ci95"), (9, "std")])
def test_nothing_is_drawn_outside_its_axes(outputs, count, spread, drawn_of):
    unlike(outputs, count)
    drawn = drawn_of(spread)
    assert set(EVERY[count].split()) <= set(drawn)
    for name, one in drawn.items():
        assert_inside(name, one.figure)
    if count == 3:  # the worst and the best domain have one axis, which holds both
        worst, best = drawn["best_and_worst_training_loss"].figure.axes
        assert worst.get_ylim() == best.get_ylim()


def assert_apart(drawn):
    boxes = [(text, box) for text, box in text_boxes(drawn.figure) if box.width > 1]
    (left, low), (right, high) = drawn.figure.bbox.padded(1.0).get_points()
    for text, box in boxes:
        assert left < box.x0 < box.x1 < right, (drawn.name, text)
        assert low < box.y0 < box.y1 < high, (drawn.name, text)
    for (a, one), (b, other) in combinations(boxes, 2):
        wide = min(one.x1, other.x1) - max(one.x0, other.x0)
        high = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert wide < 1.5 or high < 1.5, f"{drawn.name}: {a!r} lies on {b!r}"


def text_boxes(figure):
    """Everything that is written in a figure, with its box in pixels."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    with figure_style():
        figure.draw_without_rendering()
    texts = [figure._suptitle, *(t for legend in figure.legends for t in legend.get_texts())]
    for axis in figure.axes:
        texts += [axis.title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
        for one in (axis.xaxis, axis.yaxis):
            low, high = one.get_view_interval()
            for tick in one.get_major_ticks():
                if min(low, high) <= tick.get_loc() <= max(low, high) and tick.label1.get_visible():
                    texts.append(tick.label1)
    return [(t.get_text(), bbox_of(t, renderer)) for t in texts if t.get_text().strip()]


def bbox_of(text, renderer):
    """Of the letters alone: an annotation's own box has its line in it."""
    if hasattr(text, "update_positions"):
        text.update_positions(renderer)
    return Text.get_window_extent(text, renderer)
