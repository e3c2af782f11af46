"""Runs that keep a domain out of training: what they say of themselves, and the report on them."""

import io
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import rows, summary, synthetic_domains

from robustmd.domains import DomainSet
from robustmd.report.front import leave_one_out
from robustmd.report.numbers import Rule, studies
from robustmd.runs.records import read_records

DOMAINS = ("a", "b", "c")


@pytest.fixture
def train(train: Callable[..., Any]) -> Callable[..., tuple[Path, str]]:
    """Trains three iterations on three domains whose test sets have other shares of the classes;
    returns the run's directory and what it said."""
    like = synthetic_domains(examples=12)["b"]
    given = like.train.images, like.train.targets
    tests = (
        (like.test.images, like.test.targets),
        given,
        (like.test.images[:4], like.test.targets[:4]),
    )
    tensors = {
        name: (*given, 255 - images if name == "c" else images, labels)
        for name, (images, labels) in zip(DOMAINS, tests, strict=True)
    }
    domains = DomainSet.from_tensors(tensors)
    short = ("training.iterations=3", "training.batch_size=12", "evaluation.every=2")

    def go(*overrides: str) -> tuple[Path, str]:
        screen = io.StringIO()
        outcome = train("data=folder", *short, *overrides, data=domains, screen=screen)
        return outcome.directory, screen.getvalue() + outcome.message

    return go


def measured(directory: Path) -> Iterator[tuple[int, str, str, float, float]]:
    """(iteration, split, domain, loss, accuracy) of every row of metrics.csv."""
    for row in rows(directory):
        loss, accuracy = float(row["loss"]), float(row["accuracy"])
        yield int(row["iteration"]), row["split"], row["domain"], loss, accuracy


def worst_by_hand(directory: Path, split: str, domains: str, at: int = 3) -> dict[str, float]:
    found = [row for row in measured(directory) if row[:2] == (at, split) and row[2] in domains]
    assert len(found) == len(domains)
    return {"loss": max(row[3] for row in found), "accuracy": min(row[4] for row in found)}


@pytest.mark.parametrize(
    ("method", "trained", "compared"),
    [(["method=opt"], "ab", "ab"), (["method=individual", "method.domain=b"], "b", "ab")],
)
def test_a_run_says_what_trained_and_its_worst_is_without_the_unseen(
    train: Callable[..., Any], method: list[str], trained: str, compared: str
) -> None:
    directory, printed = train(*method, "data.unseen=[c]")
    found = summary(directory)
    assert found["domains"] == list(DOMAINS)
    assert (found["trained"], found["unseen"]) == (list(trained), ["c"])
    for split in ("train", "test"):
        assert found["worst"][split] == worst_by_hand(directory, split, compared)
        assert found["unseen_worst"][split] == worst_by_hand(directory, split, "c")
    for at in (0, 2, 3):
        live = worst_by_hand(directory, "train", compared, at)
        words = f"worst training loss {live['loss']:.4f}, accuracy {live['accuracy']:.2f} %"
        assert f"iteration {at}/3: {words}" in printed
    test, unseen = (worst_by_hand(directory, "test", of)["accuracy"] for of in (compared, "c"))
    verdict = f"worst test accuracy {test:.2f} %, unseen test accuracy {unseen:.2f} % (c), training"
    assert verdict in printed


def test_the_leave_one_out_table_of_real_runs(train: Callable[..., Any], tmp_path: Path) -> None:
    by_hand = []
    for kept in DOMAINS:
        directory, _ = train("method=opt", f"data.unseen=[{kept}]")
        values = [row[4] for row in measured(directory) if row[1:3] == ("test", kept)]
        by_hand.append(statistics.fmean(values[1:]))  # the untrained model is not in the mean
    assert len(set(by_hand)) > 1
    found, left_out = studies(read_records(tmp_path / "outputs"), Rule(), "std")
    assert left_out.empty
    ((*_, table),) = leave_one_out(found)
    (row,) = table.raw.to_dict("records")
    assert (row["method"], row["n"]) == ("opt", 1)
    means = [value for name, value in row.items() if name.endswith("_mean")]
    assert means == pytest.approx([*by_hand, statistics.fmean(by_hand)])
