"""Metrics beside loss and accuracy: the table equals what the runs' files say, by hand."""

import json

import pytest

ABOUT = {
    "ece": {"unit": "", "better": "smaller", "decimals": 3},
    "top2": {"unit": "%", "better": "larger", "decimals": 1},
}
HEADER = "iteration,split,domain,metric,value\n"


def measured(outputs, method, seed, values, about=ABOUT):
    """A run whose last iteration has these values: {metric: {domain: value}}."""
    path = outputs.run(method, seed, extra={"metrics": about})
    rows = [
        f"100,{split},{domain},{metric},{value if split == 'test' else 9}\n"
        for metric, by_domain in values.items()
        for domain, value in by_domain.items()
        for split in ("train", "test")
    ]
    (path / "measures.csv").write_text(HEADER + "".join(rows))
    return path


def test_the_worst_is_taken_within_each_run_by_what_is_better(outputs, written, csv_rows):
    measured(outputs, "even", 0, {"ece": {"a": 0.1, "b": 0.3}, "top2": {"a": 90, "b": 70}})
    measured(outputs, "even", 1, {"ece": {"a": 0.5, "b": 0.1}, "top2": {"a": 60, "b": 80}})
    outputs.run("opt", 0)  # which measured none of them
    outputs.run("opt", 1)
    result = written()
    ece, top2 = csv_rows(result.out / "toy" / "metrics.csv")
    assert [(row["method"], row["metric"]) for row in (ece, top2)] == [
        ("even", "ece"),
        ("even", "top2"),
    ]
    assert float(ece["a_mean"]) == pytest.approx(0.3)
    assert float(ece["worst_mean"]) == pytest.approx((0.3 + 0.5) / 2)
    assert float(top2["worst_mean"]) == pytest.approx((70 + 60) / 2)
    assert float(top2["worst_std"]) == pytest.approx(50**0.5)
    text = result.page.read_text()
    assert "### Further metrics" in text
    assert "| even | 2 | top2 | % |" in text


@pytest.mark.parametrize(
    "about",
    [
        {"ece": 5},
        {"ece": {"unit": "", "better": "best", "decimals": 3}},
        {"ece": {"unit": "", "better": "smaller", "decimals": 10**9}},
        [1],
    ],
)
def test_what_a_record_says_wrongly_of_a_metric_makes_no_row(outputs, written, about):
    measured(outputs, "even", 0, {"ece": {"a": 0.1, "b": 0.3}}, about)
    assert not (written().out / "toy" / "metrics.csv").exists()


@pytest.mark.parametrize(
    ("targets", "beside"), [("classes", "beside loss and accuracy,"), ("numbers", "beside loss,")]
)
def test_the_caption_says_what_else_is_measured(outputs, written, targets, beside):
    path = measured(outputs, "even", 0, {"ece": {"a": 0.1, "b": 0.3}})
    if targets == "numbers":
        rows = [line.split(",") for line in (path / "metrics.csv").read_text().splitlines()]
        kept = [",".join([*row[:5], "" if i else row[5], *row[6:]]) for i, row in enumerate(rows)]
        (path / "metrics.csv").write_text("\n".join(kept) + "\n")
    summary = json.loads((path / "summary.json").read_text())
    summary["loss"] = {"name": "squared error", "unit": "", "targets": targets}
    (path / "summary.json").write_text(json.dumps(summary))
    page = written().page.read_text()
    assert f"what runs measured {beside} on the test sets" in page
