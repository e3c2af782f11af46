"""Losses of one's own, for numbers as labels; label smoothing."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch
from faults.outcomes import ends_well, outcome_of
from tiny import signalled_at
from torch.nn import functional

from robustmd.losses import cross_entropy
from robustmd.registry import DATA, LOSSES, METRICS
from robustmd.report import figures
from robustmd.runs.reader import collect

PAGE = Path(__file__).parents[2] / "docs" / "own_code.md"
SHORT = ["imports=[my_losses]", "backbone.width=0.05", "runtime.device=cpu"]
SHORT += ["training.batch_size=20", "training.iterations=12", "evaluation.every=4"]
HUBER = ["data=depths", "training.loss=huber", "evaluation.metrics=[mae]"]
TAGS = ["data=tagged", "training.loss=tags"]


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Trains in an empty folder with the file that docs/own_code.md shows; returns the run."""
    code = PAGE.read_text("utf-8").partition("```python\n# my_losses.py\n")[2].partition("```")[0]
    (tmp_path / "my_losses.py").write_text(code, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    tables = [LOSSES, METRICS, DATA._options, DATA._flags]
    before = [dict(table) for table in tables]

    def go(*overrides: str, code: int = 0) -> Path:
        ended, _, err = outcome_of(["train", *SHORT, *overrides])
        assert ended == code, err
        return max(tmp_path.glob("outputs/*/*/*/seed=*"), key=lambda run: run.stat().st_mtime)

    yield go
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)
    sys.modules.pop("my_losses", None)


@pytest.mark.parametrize("settings", [HUBER, TAGS], ids=["regression", "several labels"])
def test_a_run_of_numbers_trains_resumes_and_says_what_it_measured(train, settings) -> None:
    whole = train(*settings)
    table = pd.read_csv(whole / "metrics.csv")
    assert table["accuracy"].isna().all()
    worst = table[table["split"] == "train"].groupby("iteration")["loss"].max()
    assert worst.iloc[-1] < worst.iloc[0]
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["loss"]["targets"] == "numbers"
    assert summary["worst"]["train"] == {"loss": pytest.approx(worst.iloc[-1])}
    plugins = json.loads((whole / "environment.json").read_text())["plugins"]
    assert [one["module"] for one in plugins] == ["my_losses"]
    with signalled_at(7):
        train(*settings, "paths.outputs=again", code=143)
    train(*settings, "paths.outputs=again")
    (again,) = Path("again").glob("*/*/*/seed=*")
    columns = [name for name in table if name != "seconds"]
    pd.testing.assert_frame_equal(table[columns], pd.read_csv(again / "metrics.csv")[columns])
    assert len(collect(Path("outputs")).runs) == 1
    assert ends_well(["evaluate", str(whole), "imports=[my_losses]"]) == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["data=depths"], "training.loss=cross_entropy: is of classes"),
        ([*HUBER[:2], "evaluation.metrics=[ece]"], "evaluation.metrics=[ece]: is of classes"),
        ([*TAGS, "evaluation.metrics=[mae,nope]"], "evaluation.metrics=nope: must be one of"),
        (["data=digits_mini", "training.loss=huber"], "my_losses.huber: for outputs"),
        (["training.loss=huber", "evaluation.metrics=[loss]"], "huber is measured by that name"),
        (["training.loss=hubr"], "training.loss=hubr: must be one of cross_entropy"),
        ([*HUBER, "training.label_smoothing=0.1"], "training.label_smoothing=0.1: is of"),
        (["training.label_smoothing=1"], "must be a number in [0, 1)"),
    ],
)
def test_what_does_not_go_together_is_one_line_and_leaves_nothing(
    train, settings, words, prepared_cache, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("ROBUSTMD_CACHE", str(prepared_cache))
    code, _, err = outcome_of(["train", *SHORT, *settings])
    assert (code, len(err.splitlines())) == (2, 1)
    assert words in err
    assert not (tmp_path / "outputs").exists()


def test_a_loss_that_gives_no_number_an_example_is_one_line(train, tmp_path) -> None:
    code = (tmp_path / "my_losses.py").read_text().replace(".mean(1)", ".mean()")
    (tmp_path / "my_losses.py").write_text(code)
    found, _, err = outcome_of(["train", *SHORT, *HUBER])
    assert found == 2
    assert "must give a floating-point tensor [8]" in err


def test_smoothing_is_over_the_classes_that_a_domain_has() -> None:
    logits = torch.tensor([[1.0, 2.0, -0.5], [0.3, 0.1, 0.2]], dtype=torch.float64)
    labels = torch.tensor([1, 0])
    ours = cross_entropy(logits, labels, smoothing=0.2)
    theirs = functional.cross_entropy(logits, labels, label_smoothing=0.2, reduction="none")
    torch.testing.assert_close(ours, theirs)
    wider = torch.cat([logits, torch.full((2, 1), -torch.inf)], dim=1).requires_grad_()
    masked = cross_entropy(wider, labels, smoothing=0.2)
    torch.testing.assert_close(masked.detach(), theirs)
    masked.sum().backward()
    assert wider.grad.isfinite().all()


def test_smoothing_changes_what_is_trained_on_and_is_a_run_of_its_own(
    train, prepared_cache, monkeypatch
) -> None:
    monkeypatch.setenv("ROBUSTMD_CACHE", str(prepared_cache))
    data = ["data=digits_mini", "training.learning_rate=0.001"]
    plain, smooth = train(*data), train(*data, "training.label_smoothing=0.5")
    assert plain.parent.name != smooth.parent.name
    one, other = (pd.read_csv(run / "metrics.csv")["loss"] for run in (plain, smooth))
    assert one[0] == other[0]  # what is measured is plain
    assert one.iloc[-1] != other.iloc[-1]
    first, second = (pd.read_csv(run / "weights.csv")["batch_loss"][0] for run in (plain, smooth))
    assert first != second


def test_the_report_speaks_of_the_loss_in_its_unit_and_of_no_accuracy(
    train, tmp_path, monkeypatch
) -> None:
    drawn = (figures.worst_case_training_loss, figures.paired_differences)
    monkeypatch.setattr(figures, "FIGURES", drawn)
    train(*HUBER, "method=even,opt", "seed=0,1,2", "-m")
    train("data=depths", "training.loss=tags")  # another loss: another table
    assert ends_well(["report", "outputs", "--out", "report", "--select", "final"]) == 0
    text = (tmp_path / "report" / "README.md").read_text("utf-8")
    section, _, other = text.partition("## depths (tags)")
    assert "depths (huber): losses are mean huber in m. Mean ±" in section
    assert r"| method | worst test loss \[m\] | vs even |" in section
    assert "in m per update" in section
    assert "depths (tags): losses are mean tags in nats a tag." in other
    folder = tmp_path / "report" / "depths-huber"
    table = pd.read_csv(folder / "table.csv").set_index("method")
    finals = [pd.read_csv(run / "metrics.csv") for run in Path("outputs").glob("depths/even/*/*")]
    tested = [f[(f["iteration"] == 12) & (f["split"] == "test")]["loss"] for f in finals]
    assert table.filter(like="accuracy").empty
    assert table.loc["even", "n"] == 3
    expected = sum(one.max() for one in tested) / 3
    assert table.loc["even", "worst_test_loss_mean"] == pytest.approx(expected)
    assert {*pd.read_csv(folder / "metrics.csv")["unit"]} == {"m"}
    assert len(list(folder.glob("*.png"))) == 2
