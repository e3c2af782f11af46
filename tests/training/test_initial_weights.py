"""Runs that begin with a file's weights: said, recorded, and not mixed with other weights' runs."""

import hashlib
import io
import json
from pathlib import Path

import pytest
import torch
from rich.console import Console
from tiny import composed, summary
from torchvision.models import resnet18

from robustmd.errors import UserError
from robustmd.runs import checkpoints
from robustmd.training import run as run_module


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    torch.save(resnet18().state_dict(), tmp_path / "weights.pth")
    return tmp_path / "weights.pth"


@pytest.fixture
def train(domains, tmp_path: Path):
    """Two iterations of resnet18 on the tiny domains; returns the outcome and what was printed."""

    def go(*overrides: str):
        small = [
            "backbone=resnet18",
            "training.iterations=2",
            "training.batch_size=8",
            "training.learning_rate=0.001",
            "runtime.threads=1",
            "runtime.device=cpu",
            f"paths.outputs={tmp_path / 'outputs'}",
        ]
        screen = io.StringIO()
        outcome = run_module.run(composed(*small, *overrides), Console(file=screen, width=300))
        return outcome, screen.getvalue()

    return go


def test_it_is_said_and_recorded(train, weights: Path) -> None:
    outcome, said = train(f"backbone.weights={weights}")
    assert outcome.status == "finished"
    assert "a new, random head for 3 classes" in said
    assert "random head for 3 classes" in (outcome.directory / "train.log").read_text()
    said = summary(outcome.directory)
    assert any("random head for 3 classes" in note for note in said["notes"])
    environment = json.loads((outcome.directory / "environment.json").read_text())
    assert environment["weights_sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    again, _ = train(f"backbone.weights={weights}")
    assert again.status == "kept"


def test_other_weights_under_the_same_path_are_refused(train, weights: Path) -> None:
    once = (f"backbone.weights={weights}", "training.iterations=1", "evaluation.every=2")
    train(*once)
    torch.manual_seed(2)
    torch.save(resnet18().state_dict(), weights)
    with pytest.raises(UserError, match=r"began with other weights .*force=true"):
        train(*once)
    assert train(*once, "force=true")[0].status == "finished"


def test_random_weights_and_the_averaging_method(train) -> None:
    """minimax measures averaged iterates, whose batch-norm statistics are their own."""
    outcome, said = train("backbone.weights=none", "method=minimax")
    assert outcome.status == "finished"
    assert "head" not in said
    rows = (outcome.directory / "metrics.csv").read_text().splitlines()
    assert any("train_averaged" in row and row.startswith("2,") for row in rows)


def test_a_run_begins_where_the_file_says(train, weights: Path) -> None:
    """At a learning rate of nearly 0 the final model is the file's but for the head."""
    outcome, _ = train(f"backbone.weights={weights}", "training.learning_rate=1e-12")
    final = checkpoints.load_model(outcome.directory)
    begun = torch.load(weights, weights_only=True)
    assert final.keys() == resnet18().state_dict().keys()
    torch.testing.assert_close(final["layer4.1.conv2.weight"], begun["layer4.1.conv2.weight"])
