"""What users write is tried before training: each fault is one line, and leaves nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import summary
from torch import nn

from robustmd.adversary import Adversary
from robustmd.errors import UserError
from robustmd.registry import AUGMENTATIONS, LOSSES, METRICS, Augmentation, Loss, Metric
from robustmd.training import learner as learner_module

Train = Callable[..., Any]


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """A run that was refused leaves no directory."""
    yield
    assert not [*(tmp_path / "refused").glob("*/*/*/*")]


def refused(train: Train, tmp_path: Path, *overrides: str) -> str:
    with pytest.raises(UserError) as error:
        train(*overrides, outputs=tmp_path / "refused")
    (line,) = str(error.value).splitlines()
    return line


# --- the model -----------------------------------------------------------------------------------


class Odd(nn.Module):
    """A linear model that answers otherwise in training mode."""

    def __init__(self, change: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.linear, self.change = nn.Linear(3, 3), change

    def forward(self, images: torch.Tensor) -> Any:
        logits = self.linear(images.mean((2, 3)))
        return self.change(logits) if self.training else logits


ODD: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "a tuple": (lambda z: (z, z), "gives tuple for float32 [8, 3, 32, 32] in training mode"),
    "a dict": (lambda z: {"logits": z}, "gives dict"),
    "a vector": (lambda z: z[:, 0], "gives [8] for"),
    "twice the rows": (lambda z: torch.cat([z, z]), "gives [16, 3] for"),
    "nothing": (lambda z: None, "gives NoneType"),
    "another class too many": (lambda z: torch.cat([z, z], 1), "must give logits [8, 3]"),
    "an exception": (lambda z: z.view(7, 7), "the model fails for float32 [8, 3, 32, 32] in tr"),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_model_that_answers_otherwise_in_training_mode(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    change, words = ODD[kind]
    monkeypatch.setattr(learner_module, "build_backbone", lambda *_: Odd(change))
    assert words in refused(train, tmp_path)


def test_batch_norm_on_one_example(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*_: Any) -> nn.Module:
        return nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.BatchNorm1d(3), nn.Linear(3, 3)
        )

    monkeypatch.setattr(learner_module, "build_backbone", build)
    line = refused(train, tmp_path, "method=individual", "training.batch_size=1")
    assert "Expected more than 1 value per channel" in line


def test_trying_leaves_the_models_buffers_and_torchs_numbers(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of a run are those without the trial."""
    settings = ("backbone=convnet", "backbone.width=0.5", "++backbone.dropout=0.5")
    tried = train(*settings).directory
    from robustmd.training import run as run_module

    monkeypatch.setattr(run_module, "try_parts", lambda run: None)
    untried = train(*settings, outputs=tmp_path / "untried").directory
    assert (tried / "weights.csv").read_bytes() == (untried / "weights.csv").read_bytes()


# --- the loss and the metrics --------------------------------------------------------------------


def more_than_two(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    if len(outputs) > 2:
        raise IndexError("only two")
    return outputs[:, 0]


BAD_LOSSES: dict[str, tuple[Callable[..., Any], str]] = {
    "one number": (lambda z, y: z.mean()[None], "not: [1]"),
    "a matrix": (lambda z, y: z[:, :2], "not: [8, 2]"),
    "whole numbers": (lambda z, y: y, "not: torch.int64 [8]"),
    "detached": (lambda z, y: z[:, 0].detach(), "one without a gradient"),
    "raising for more than two": (more_than_two, "not: only two"),
    "no tensor": (lambda z, y: 0.3, "not: float"),
    "a KeyError": (lambda z, y: {}["x"], "not: 'x'"),
}


@pytest.mark.parametrize("kind", BAD_LOSSES)
def test_a_loss_that_gives_no_number_an_example(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    function, words = BAD_LOSSES[kind]
    monkeypatch.setitem(LOSSES, "bad", Loss("bad", "", function))
    line = refused(train, tmp_path, "training.loss=bad")
    assert line.startswith("training.loss=bad: ")
    assert "must give a floating-point tensor [8]" in line
    assert words in line


@pytest.mark.parametrize(
    "function", [lambda z, y: {}["x"], lambda z, y: z, lambda z, y: None, lambda z, y: "high"]
)
def test_a_metric_that_gives_no_number(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Any
) -> None:
    monkeypatch.setitem(METRICS, "bad", Metric("bad", "", "larger", 3, function))
    line = refused(train, tmp_path, "evaluation.metrics=[bad]")
    assert line.startswith("evaluation.metrics=[bad]: ")
    assert "gives no number for logits [8, 3]" in line


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e300])
def test_a_metric_that_is_not_finite_chooses_nothing_and_the_run_goes_on(
    gone_on: Any, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    """Once its checkpoints were refused, or summary.json said −4503599627370496.0."""
    from tiny import synthetic_domains

    monkeypatch.setitem(METRICS, "odd", Metric("odd", "", "larger", 3, lambda z, y: value))
    asked = ("evaluation.metrics=[odd]", "evaluation.keep=best_val", "evaluation.best_by=worst_odd")
    data = synthetic_domains().with_validation(0.2, 0)
    resumed, _ = gone_on(*asked, "data.validation=0.2", after=7, data=data)
    found = summary(resumed)
    finite = value == 1e300
    assert found["best"]["value"] == (value if finite else None)
    said = [line for line in found["warnings"] if "was no finite number" in line]
    assert len(said) == (0 if finite else 1)


# --- the rule ------------------------------------------------------------------------------------


class Rule(Adversary):
    """Answers with what it is told to."""

    answer: Any = None

    def _respond(self, f: torch.Tensor) -> Any:
        return type(self).answer(f), f.sum(), None


BAD_RULES: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "sum 2": (torch.ones_like, "gives the weights 1, 1 at its first update"),
    "sum 0": (torch.zeros_like, "gives the weights 0, 0"),
    "negative": (lambda f: torch.tensor([1.5, -0.5]).to(f), "none of them negative"),
    "NaN": (lambda f: f * float("nan"), "gives the weights nan, nan"),
    "a scalar": (lambda f: f.sum(), "must give 2 numbers of sum 1"),
    "too many": (lambda f: torch.ones(3).to(f) / 3, "fails at its first update"),
    "no tensor": (lambda f: [0.5, 0.5], "fails at its first update"),
}


@pytest.mark.parametrize("kind", BAD_RULES)
def test_a_rule_off_the_simplex_is_named(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    answer, words = BAD_RULES[kind]
    monkeypatch.setattr(Rule, "answer", staticmethod(answer))
    monkeypatch.setattr(learner_module, "build_adversary", lambda *_: Rule(2))
    line = refused(train, tmp_path)
    assert f"{__name__}.Rule" in line
    assert words in line


# --- augmentations -------------------------------------------------------------------------------

BAD_AUGMENTATIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "nothing": (lambda x: None, "makes images NoneType of [20, 3, 32, 32]; the shape must stay"),
    "smaller": (lambda x: x[:, :, 1:], "makes images [20, 3, 31, 32]"),
    "NaN": (lambda x: x * float("nan"), "makes images that are not finite"),
    "in 0..1": (lambda x: x / 255, "multiply by 255"),
    "standardised": (lambda x: (x.float() - x.float().mean()) / x.float().std(), "must be in 0..2"),
    "an exception": (lambda x: x.view(3), "fails for uint8 [20, 3, 32, 32]"),
}


@pytest.mark.parametrize("kind", BAD_AUGMENTATIONS)
def test_an_augmentation_that_gives_no_images(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    function, words = BAD_AUGMENTATIONS[kind]
    monkeypatch.setitem(AUGMENTATIONS, "bad", Augmentation("bad", function, None))
    line = refused(train, tmp_path, "data.augment=bad")
    assert line.startswith("data.augment=bad: ")
    assert words in line
