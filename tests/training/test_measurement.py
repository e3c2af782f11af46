import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import synthetic_domains
from torch import nn
from torch.nn import functional

from robustmd.domains.domain import DomainSet
from robustmd.training import measurement
from robustmd.training.measurement import Measure, images_at_once, measure, worst
from robustmd.training.pixels import normalised
from robustmd.training.pool import resident_splits

CPU = torch.device("cpu")


class Planted(nn.Module):
    """Logits from the mean brightness: a fixed linear rule."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        brightness = images.mean(dim=(1, 2, 3))
        return torch.stack([-brightness, torch.zeros_like(brightness), brightness], dim=1)


@pytest.mark.parametrize("at_once", [1, 7, 10_000])
def test_loss_and_accuracy_are_those_of_one_pass_over_all(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "PIXELS_AT_ONCE", at_once * 32 * 32)
    domains = synthetic_domains()
    found = measure(Planted(), resident_splits(domains, CPU)["train"])
    for domain in domains:
        images = normalised(torch.from_numpy(np.asarray(domain.train.images)))
        labels = torch.from_numpy(domain.train.targets)
        logits = Planted()(images)
        assert found[domain.name].examples == len(labels)
        expected = functional.cross_entropy(logits.double(), labels).item()
        assert found[domain.name].loss == pytest.approx(expected, rel=1e-6)
        correct = (logits.argmax(1) == labels).double().mean().item()
        assert found[domain.name].accuracy == pytest.approx(100 * correct)


def test_the_model_is_measured_in_evaluation_mode_and_left_as_it_was() -> None:
    seen = []

    class Watcher(Planted):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            seen.append((self.training, torch.is_grad_enabled()))
            return super().forward(images)

    model = Watcher().train()
    measure(model, resident_splits(synthetic_domains(), CPU)["test"])
    assert set(seen) == {(False, False)}
    assert model.training


def test_a_measurement_can_be_stopped_between_passes() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    model = Planted().train()
    with pytest.raises(KeyboardInterrupt):
        measure(model, resident_splits(synthetic_domains(), CPU)["train"], between=stop)
    assert model.training


@pytest.mark.parametrize("losses", [(math.nan, 0.4), (0.4, math.nan), (math.inf, math.nan)])
def test_the_worst_is_not_finite_where_a_loss_is_not(losses: tuple[float, float]) -> None:
    found = worst({name: Measure(loss, 1.0, 1) for name, loss in zip("ab", losses, strict=True)})
    assert math.isnan(found["loss"])
    assert worst({"a": Measure(math.inf, 1.0, 1), "b": Measure(1, 1.0, 1)})["loss"] == math.inf


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
    monkeypatch.setattr(measurement, "PIXELS_AT_ONCE", at_once * 64)
    labels, predicted, expected = CONSTANT[case]
    targets = np.array(labels)
    images = np.zeros((len(labels), 8, 8, 3), np.uint8)
    images[targets == targets.max()] = 255
    everything = images, targets, images, targets
    of_all = np.zeros((6, 8, 8, 3), np.uint8), np.arange(6)
    domains = DomainSet.from_tensors({"one": everything, "all": (*of_all, *of_all)}, name="toy")
    found = measure(Says(*predicted), resident_splits(domains, CPU)["test"])
    assert found["one"].constant is expected


def test_constant_is_of_the_predictions_with_the_absent_classes_left_out() -> None:
    split = resident_splits(synthetic_domains(), CPU)["test"]["a"]
    split.absent = torch.tensor([False, False, True])
    split.labels = split.labels % 2
    two = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 3))
    with torch.no_grad():
        two[1].weight.zero_()
        two[1].bias.copy_(torch.tensor([0.0, 1.0, 9.0]))
    assert measure(two, {"a": split})["a"].constant


def test_larger_gpus_take_more_images_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    split = resident_splits(synthetic_domains(), CPU)["train"]["a"]
    assert images_at_once(split) == 2**20 // 32**2
    split.device = torch.device("cuda", 0)
    for gigabytes, expected in ((4, 2**20), (16, 2**21), (1000, 2**24)):
        card = SimpleNamespace(total_memory=gigabytes * 2**30)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _, card=card: card)
        assert images_at_once(split) == expected // 32**2


def test_a_full_measurement_serves_the_adversary_of_the_same_iteration(
    train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """best_response every 4 iterations, measured every 4: no pass over the data is made twice."""
    from robustmd.training import session

    calls: list[int] = []
    real = session.measure

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return real(*args, **kwargs)

    monkeypatch.setattr(session, "measure", counted)
    shared = train("method=best_response", "method.every=4")
    assert len(calls) == 2 * 4  # train and test at iterations 0, 4, 8 and 12
    calls.clear()
    apart = train("method=best_response", "method.every=4", "evaluation.examples=59")
    assert len(calls) == 2 * 4 + 3  # a measurement of a part does not serve: 0, 4 and 8
    texts = [(run.directory / "weights.csv").read_text() for run in (shared, apart)]
    assert texts[0] == texts[1]
