"""The worst-case training loss over iterations."""

import warnings

import numpy as np

from robustmd.report.aggregate import sections
from robustmd.report.curves import draw, group_curve, image_bytes, worst_case_curve
from robustmd.runs.reader import collect


def section_of(outputs):
    (section,), _ = sections(collect(outputs.root).runs)
    return section


def test_the_largest_loss_over_the_domains_at_every_measurement(outputs):
    curve = [{"a": 2.0, "b": 3.0}, {"a": 1.5, "b": 1.0}]
    outputs.run(curve=curve, train={"a": (0.5, 80.0), "b": (0.7, 90.0)})
    (run,) = section_of(outputs).runs
    assert worst_case_curve(run) == {0: 3.0, 50: 1.5, 100: 0.7}


def test_a_measurement_without_all_domains_is_left_out(outputs):
    outputs.run(curve=[{"a": 2.0, "b": 3.0}, {"a": 1.5}, {"a": float("nan"), "b": 1.0}, {}])
    (run,) = section_of(outputs).runs
    assert worst_case_curve(run) == {0: 3.0, 100: 0.5}


def test_mean_smallest_and_largest_where_all_seeds_measured(outputs):
    outputs.run(seed=0, curve=[{"a": 1.0, "b": 3.0}, {"a": 2.0, "b": 1.0}])
    outputs.run(seed=1, curve=[{"a": 4.0, "b": 3.0}, {"a": 2.0}])
    outputs.run(seed=2, curve=[{"a": 5.0, "b": 3.0}, {"a": 2.0, "b": 1.0}])
    curve = group_curve(section_of(outputs).groups[0])
    np.testing.assert_array_equal(curve.iterations, [0, 100])
    np.testing.assert_array_equal(curve.mean, [4.0, 0.5])
    np.testing.assert_array_equal(curve.low, [3.0, 0.5])
    np.testing.assert_array_equal(curve.high, [5.0, 0.5])


def test_panels_lines_and_log_axis(outputs):
    curve = [{"a": 2.0, "b": 3.0}, {"a": 1.0, "b": 0.5}]
    for seed in (0, 1):
        outputs.run("even", seed, curve=curve)
        outputs.run("individual", seed, curve=curve, settings={"domain": "a"})
        for i, lam in enumerate((0.1, 1.0)):
            outputs.run("opt", seed, curve=curve, settings={"lam": lam}, folder=str(i))
    left, right = draw(section_of(outputs)).axes
    assert (left.get_title(), right.get_title()) == ("individual methods", "mixtures")
    assert (len(left.lines), len(right.lines)) == (1, 3)
    assert right.get_yscale() == "log"
    texts = [text.get_text() for text in right.get_legend().get_texts()]
    assert texts == ["even (n = 2)", "opt λ=0.1 (n = 2)", "opt λ=1 (n = 2)"]
    assert "smallest to largest" in right.get_legend().get_title().get_text()
    looks = {(line.get_color(), line.get_linestyle()) for line in right.lines}
    assert len({line.get_linestyle() for line in right.lines}) == len(looks) == 3


def test_awkward_runs_make_figures_without_a_warning(outputs):
    names = ["even", "opt", "a&b_<i>", "$x", "_hidden", "日本", *(f"m{i}" for i in range(8))]
    for i, name in enumerate(names):
        outputs.run(name, train={"a": (0.0, 100.0), "b": (0.0 if i % 2 else 0.1, 90.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = draw(section_of(outputs))
        png, pdf = image_bytes(figure, "png"), image_bytes(figure, "pdf")
    assert png.startswith(b"\x89PNG")
    assert pdf.startswith(b"%PDF")
    (axis,) = figure.axes
    box = axis.get_window_extent()
    legend = axis.get_legend().get_window_extent()
    assert legend.y1 < box.y0, "the legend lies on the curves"
    assert legend.y0 > -1, "the legend is cut off"
