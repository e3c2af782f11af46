"""What the model says of a whole split: measures, of which tables and curves are made; logits."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from robustmd import metrics as reducers
from robustmd.errors import UserError, first_line
from robustmd.losses import cross_entropy
from robustmd.metrics import MEASURED
from robustmd.registry import METRICS, Metric
from robustmd.training.learner import LossFunction
from robustmd.training.pool import ResidentExamples, Splits, chunks
from robustmd.training.ranks import here

PIXELS_AT_ONCE = 2**20  # image height × width × images in one forward pass
MOST_PIXELS = 2**24  # the same on a GPU with enough memory
BYTES_A_PIXEL = 2**13  # of a GPU, more than a forward pass takes of ours


@dataclass(frozen=True)
class Measure:
    """Mean loss f_k, accuracy Acc_k in percent (None where labels are numbers), over how many
    examples; `constant`: one class is predicted for all, and they are of more than one; `further`:
    other metrics by name."""

    loss: float
    accuracy: float | None
    examples: int
    constant: bool = False
    further: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """All of it by name, the further metrics too; no accuracy where there is none."""
        plain = dataclasses.asdict(self)
        if self.accuracy is None:
            del plain["accuracy"]
        return plain | plain.pop("further")


def measure(
    model: nn.Module,
    domains: Mapping[str, ResidentExamples],
    positions: Mapping[str, torch.Tensor] | None = None,
    between: Callable[[], None] = lambda: None,
    metrics: Sequence[str] = (),
    loss: LossFunction = cross_entropy,
) -> dict[str, Measure]:
    """f_k and Acc_k of every domain, in evaluation mode, and what `metrics` names of `METRICS`.

    positions: name -> those to measure; domains not named are measured whole. between: called
    between forward passes; may raise to stop.

    Of several processes each measures every G-th domain, and all get all measures.
    Sums are kept on the device (float64 where it has it); the host reads once, at the end.
    """
    ranks, asked = here(), [METRICS[name] for name in metrics]
    chosen = positions or {}
    with evaluating(model):
        sums = [
            _sums(model, split, chosen.get(name), between, asked, loss)
            if number % ranks.size == ranks.index
            else torch.zeros(4 + len(asked), dtype=torch.float64, device=split.device)
            for number, (name, split) in enumerate(domains.items())
        ]
        found = ranks.sum(torch.stack(sums), between).tolist()
    return {
        name: Measure(
            total / count,
            None if math.isnan(correct) else 100.0 * correct / count,
            int(count),
            bool(constant),
            dict(zip(metrics, further, strict=True)),
        )
        for name, (total, correct, count, constant, *further) in zip(domains, found, strict=True)
    }


def _sums(
    model: nn.Module,
    split: ResidentExamples,
    positions: torch.Tensor | None,
    between: Callable[[], None],
    metrics: Sequence[Metric],
    loss: LossFunction,
) -> torch.Tensor:
    """[4 + metrics]: summed loss, correct predictions (NaN: labels are numbers), examples; 1 for a
    constant prediction, else 0; the metrics' values, of all logits."""
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    exact = torch.float32 if split.device.type == "mps" else torch.float64
    total = torch.zeros(3, dtype=exact, device=split.device)
    ends = torch.full((4,), 2**31, device=split.device)  # the least predicted, −most, least label …
    for images, labels in chunks(split, images_at_once(split), positions):
        logits = masked(model(images).float(), split.absent)
        summed = loss(logits, labels).to(exact).sum()
        correct = torch.full_like(summed, math.nan)
        if not labels.is_floating_point():
            predicted = logits.argmax(1)
            correct = (predicted == labels).sum().to(exact)
            both_ways = torch.stack([predicted, -predicted, labels, -labels])
            ends = torch.minimum(ends, both_ways.amin(1))
        total += torch.stack([summed, correct, torch.full_like(summed, len(labels))])
        if metrics:
            kept.append((logits, labels))
        between()
    constant = (ends[0] == -ends[1]) & (ends[2] < -ends[3])
    values = [_value(one, kept, total) for one in metrics]
    return torch.stack([*total, constant.to(exact), *values])


def _value(
    metric: Metric, kept: Sequence[tuple[torch.Tensor, torch.Tensor]], like: torch.Tensor
) -> torch.Tensor:
    logits, labels = (torch.cat(parts) for parts in zip(*kept, strict=True))
    try:
        found = torch.as_tensor(metric.of(logits, labels), dtype=like.dtype, device=like.device)
        return found.reshape(())
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(
            f"evaluation.metrics=[{metric.name}]: {metric.of.__module__}.{metric.of.__qualname__} "
            f"gives no number for logits {list(logits.shape)} and labels {list(labels.shape)}: "
            f"{first_line(error)}"
        ) from None


def predict(model: nn.Module, splits: Splits) -> dict[str, np.ndarray]:
    """The arrays of predictions.npz: for every split and domain, `<split>/<domain>/id` (int64 [n],
    row in the prepared arrays), `…/label` (int64 [n] or float32 [n, C]) and `…/logits` (float16
    [n, C]): as the model gives them, of all classes, whether or not the domain has them
    (data.labels=per_domain masks them elsewhere); and `…/file` (text [n]) where each image has a
    file of its own. Images are seen as in a measurement."""
    arrays: dict[str, np.ndarray] = {}
    with evaluating(model):
        for split, domains in splits.items():
            for name, examples in domains.items():
                parts = chunks(examples, images_at_once(examples))
                logits = torch.cat([model(images).half() for images, _ in parts])
                found = {"id": examples.ids, "label": examples.labels, "logits": logits}
                arrays |= {f"{split}/{name}/{key}": x.cpu().numpy() for key, x in found.items()}
                if examples.files is not None:
                    of_each = [examples.files[row] for row in examples.ids.tolist()]
                    arrays[f"{split}/{name}/file"] = np.array(of_each)
    return arrays


def check_outputs(model: nn.Module, split: ResidentExamples, classes: int) -> None:
    """Raises UserError: the model does not take two of the examples, or gives other than float
    [2, C] for them; any C where labels are numbers."""
    images, labels = next(chunks(split, 2))
    takes = f"for {str(images.dtype).removeprefix('torch.')} {list(images.shape)}"
    try:
        with evaluating(model), torch.random.fork_rng(devices=[]):
            shape = list(model(images).shape)
    except Exception as error:  # of the user's own module, of any kind
        line = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise UserError(f"the model fails {takes}: {line}") from error
    wanted = [len(images), shape[1] if labels.is_floating_point() and shape[1:] else classes]
    if shape != wanted:
        raise UserError(f"the model gives {shape} {takes}; must give logits {wanted}")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients; afterwards each part's mode is as it was."""
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for part in training:
            part.training = True


def masked(logits: torch.Tensor, absent: torch.Tensor | None) -> torch.Tensor:
    """The logits [..., C] with −∞ for the classes that a domain does not have: they then have
    probability 0, and loss and gradient are those of a head without their rows."""
    return logits if absent is None else logits.masked_fill(absent, -torch.inf)


def images_at_once(split: ResidentExamples) -> int:
    """How many images one forward pass of a measurement takes.

    More on a GPU with more memory; on all of it, not on what is free just now: a pass over another
    number of images may round differently, and the same command shall give the same bytes.
    """
    pixels = PIXELS_AT_ONCE
    if split.device.type == "cuda":
        memory = torch.cuda.get_device_properties(split.device).total_memory
        pixels = max(pixels, min(MOST_PIXELS, memory // BYTES_A_PIXEL))
    return max(1, pixels // math.prod(split.image_size))


def worst(measures: Mapping[str, Measure]) -> dict[str, float]:
    """f_w = max_k f_k and Acc_w = min_k Acc_k, where there are accuracies, within one run; NaN
    where one of them is."""
    columns = {name: [getattr(one, name) for one in measures.values()] for name in MEASURED}
    return {
        name: float(reducers.worst(values, METRICS[name].better))
        for name, values in columns.items()
        if None not in values
    }
