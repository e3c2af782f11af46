"""What is measured of whole splits."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import synthetic_domains
from torch import nn
from torch.nn import functional

from robustmd.domains import DomainSet
from robustmd.losses import cross_entropy
from robustmd.registry import METRICS, Metric
from robustmd.training import measure as measure_module
from robustmd.training import run as run_module
from robustmd.training.data import Images
from robustmd.training.measure import Measures, images_at_once, measure, worst

CPU = torch.device("cpu")


class Planted(nn.Module):
    """Logits from the mean brightness: a fixed linear rule."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        brightness = images.mean(dim=(1, 2, 3))
        return torch.stack([-brightness, torch.zeros_like(brightness), brightness], dim=1)


def measured(model: nn.Module, domains: DomainSet, split: str, **more: Any) -> Measures:
    images = Images(domains, CPU)
    more.setdefault("loss", cross_entropy)
    return measure(model, images, images.parts[split], **more)


@pytest.mark.parametrize("at_once", [1, 7, 10_000])
def test_loss_and_accuracy_are_those_of_one_pass_over_all(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_module, "PIXELS_AT_ONCE", at_once * 32 * 32)
    domains = synthetic_domains()
    images = Images(domains, CPU)
    found = measure(Planted(), images, images.parts["train"], cross_entropy)
    for name, part in images.parts["train"].items():
        ((whole, labels),) = images.chunks(part, 1000)
        logits = Planted()(whole)
        assert found[name]["examples"] == len(labels) == 60
        expected = functional.cross_entropy(logits.double(), labels).item()
        assert found[name]["loss"] == pytest.approx(expected, rel=1e-6)
        correct = (logits.argmax(1) == labels).double().mean().item()
        assert found[name]["accuracy"] == pytest.approx(100 * correct)


def test_the_model_is_measured_in_evaluation_mode_and_left_as_it_was() -> None:
    seen = []

    class Watcher(Planted):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            seen.append((self.training, torch.is_grad_enabled()))
            return super().forward(images)

    def stop() -> None:
        raise KeyboardInterrupt

    model = Watcher().train()
    measured(model, synthetic_domains(), "test")
    with pytest.raises(KeyboardInterrupt):
        measured(model, synthetic_domains(), "test", between=stop)
    assert set(seen) == {(False, False)}
    assert model.training


@pytest.mark.parametrize("losses", [(math.nan, 0.4), (0.4, math.nan), (math.inf, math.nan)])
def test_the_worst_is_not_finite_where_a_loss_is_not(losses: tuple[float, float]) -> None:
    found = worst({k: {"loss": x, "accuracy": 1.0} for k, x in zip("ab", losses, strict=True)})
    assert math.isnan(found["loss"])
    assert worst({"a": {"loss": math.inf}, "b": {"loss": 1.0}}) == {"loss": math.inf}


def test_a_loss_or_a_metric_that_writes_into_its_arguments_changes_no_other_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once such a loss halved the recorded accuracy."""

    def hinge(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        outputs[torch.arange(len(labels)), labels] -= 1000
        labels.fill_(0)
        return outputs.amax(1)

    def wiping(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits.zero_()
        return labels.sum()

    monkeypatch.setitem(METRICS, "wiping", Metric("wiping", "", "larger", 3, wiping))
    domains = synthetic_domains()
    names = ["wiping", "macro_accuracy"]
    plain = measured(Planted(), domains, "test", metrics=names)
    written = measured(Planted(), domains, "test", metrics=names, loss=hinge)
    for name in ("a", "b"):
        for what in ("accuracy", "constant", "macro_accuracy", "wiping"):
            assert written[name][what] == plain[name][what]
        assert plain[name]["macro_accuracy"] == pytest.approx(plain[name]["accuracy"])


class Says(nn.Module):
    """A rule that predicts a class for an image by its first pixel (0 or 255)."""

    def __init__(self, *classes: int) -> None:
        super().__init__()
        self.classes = torch.tensor(classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        bright = (images[:, 0, 0, 0] > 0).long()
        return functional.one_hot(self.classes[bright], 6).float()


CONSTANT = {  # the labels, the classes predicted for dark and for bright, and the right answer
    "one class of many, and a common one": ([0] * 70 + [1, 2, 3, 4, 5] * 6, (0, 0), True),
    "the one class that there is": ([3] * 8, (3, 3), False),
    "one class, and never right": ([3] * 8, (1, 1), False),
    "two classes predicted": ([0] * 70 + [1] * 8, (0, 1), False),
    "two labels, one prediction": ([0, 5], (5, 5), True),
}


@pytest.mark.parametrize("at_once", [1, 10_000])
@pytest.mark.parametrize("case", CONSTANT)
def test_constant_is_one_class_predicted_where_there_are_more(
    case: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_module, "PIXELS_AT_ONCE", at_once * 64)
    labels, predicted, expected = CONSTANT[case]
    targets = np.array(labels)
    images = np.zeros((len(labels), 8, 8, 3), np.uint8)
    images[targets == targets.max()] = 255
    of_all = np.zeros((6, 8, 8, 3), np.uint8), np.arange(6)
    domains = DomainSet.from_tensors({"one": (images, targets) * 2, "all": of_all * 2})
    assert measured(Says(*predicted), domains, "test")["one"]["constant"] is expected


def test_absent_classes_are_in_no_prediction_and_no_loss() -> None:
    domains = synthetic_domains()
    images = Images(domains, CPU)
    images.absent = torch.tensor([[False, False, True], [False] * 3])
    images.labels = images.labels % 2
    two = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 3))
    with torch.no_grad():
        two[1].weight.zero_()
        two[1].bias.copy_(torch.tensor([0.0, 1.0, 9.0]))
    found = measure(two, images, images.parts["test"], cross_entropy)
    assert found["a"]["constant"]
    share = (images.labels[images.parts["test"]["a"].rows] == 0).double().mean().item()
    due = share * math.log(1 + math.e) + (1 - share) * math.log(1 + 1 / math.e)
    assert found["a"]["loss"] == pytest.approx(due, rel=1e-6)
    assert found["b"]["loss"] > 7


def test_larger_gpus_take_more_images_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    images = Images(synthetic_domains(), CPU)
    assert images_at_once(images) == 2**20 // 32**2
    images.device = torch.device("cuda", 0)
    for gigabytes, expected in ((4, 2**20), (16, 2**21), (1000, 2**24)):
        card = SimpleNamespace(total_memory=gigabytes * 2**30)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _, card=card: card)
        assert images_at_once(images) == expected // 32**2


def test_a_full_measurement_serves_the_adversary_of_the_same_iteration(
    train: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """best_response every 4 iterations, measured every 4: no pass over the data is made twice."""
    calls: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return measure(*args, **kwargs)

    monkeypatch.setattr(run_module, "measure", counted)
    shared = train("method=best_response", "method.every=4")
    assert len(calls) == 2 * 4  # train and test at iterations 0, 4, 8 and 12
    calls.clear()
    apart = train("method=best_response", "method.every=4", "evaluation.examples=59")
    assert len(calls) == 2 * 4 + 3  # a measurement of a part does not serve: 0, 4 and 8
    texts = [(run.directory / "weights.csv").read_text() for run in (shared, apart)]
    assert texts[0] == texts[1]
