"""Runs that begin with a file's weights: said, recorded, and not mixed with other weights' runs."""

import hashlib
import io
import json
from pathlib import Path

import pytest
import torch
from tiny import rows, summary
from torchvision.models import resnet18

from robustmd.runs import checkpoints


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    torch.save(resnet18().state_dict(), tmp_path / "weights.pth")
    return tmp_path / "weights.pth"


@pytest.fixture
def train(train):
    """An iteration of resnet18 on the tiny domains at a learning rate of nearly 0; returns the
    outcome and what was printed."""

    def go(*overrides: str):
        short = ("training.iterations=1", "training.batch_size=8", "training.learning_rate=1e-12")
        screen = io.StringIO()
        return train("backbone=resnet18", *short, *overrides, screen=screen), screen.getvalue()

    return go


def test_a_run_begins_where_the_file_says_and_with_no_other(train, weights: Path) -> None:
    """The final model is the file's but for the head."""
    given = f"backbone.weights={weights}"
    outcome, said = train(given)
    final = checkpoints.load_model(outcome.directory)
    begun = torch.load(weights, weights_only=True)
    assert final.keys() == begun.keys()
    torch.testing.assert_close(final["layer4.1.conv2.weight"], begun["layer4.1.conv2.weight"])
    assert "a new, random head for 3 classes" in said
    assert "random head for 3 classes" in (outcome.directory / "train.log").read_text()
    assert any("random head for 3 classes" in n for n in summary(outcome.directory)["notes"])
    environment = json.loads((outcome.directory / "environment.json").read_text())
    assert environment["weights_sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert train(given)[0].status == "kept"
    torch.save(resnet18().state_dict(), weights)  # other random ones: another run
    other, _ = train(given)
    assert other.status == "finished"
    assert other.directory != outcome.directory


def test_random_weights_and_the_averaging_method(train) -> None:
    """minimax measures averaged iterates, whose batch-norm statistics are their own."""
    outcome, said = train("backbone.weights=none", "method=minimax")
    assert outcome.status == "finished"
    assert "head" not in said
    measured = {(row["iteration"], row["split"]) for row in rows(outcome.directory)}
    assert ("1", "train_averaged") in measured
