"""What the model says of whole splits: measures, of which tables and curves are made; logits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from robustmd import metrics as reducers
from robustmd.errors import UserError, first_line
from robustmd.metrics import MEASURED
from robustmd.registry import METRICS
from robustmd.training.data import Images, Part, masked
from robustmd.training.distributed import Processes
from robustmd.training.learner import Loss

PIXELS_AT_ONCE = 2**20  # image height × width × images in one forward pass
MOST_PIXELS = 2**24  # the same on a GPU with enough memory
BYTES_A_PIXEL = 2**13  # of a GPU, more than a forward pass takes of ours

# domain -> "loss" (nats), "accuracy" (percent; none where labels are numbers), "examples",
# "constant" (one class is predicted for all, and they are of more than one), other metrics by name
Measures = dict[str, dict[str, Any]]
Logits = Callable[[Tensor], Tensor]


def measure(
    logits: Logits,
    model: nn.Module,
    images: Images,
    parts: Mapping[str, Part],
    loss: Loss,
    metrics: Sequence[str] = (),
    positions: Mapping[str, Tensor] | None = None,
    between: Callable[[], None] = lambda: None,
    processes: Processes | None = None,
) -> Measures:
    """f_k and Acc_k of every domain, in evaluation mode, and `metrics` by their names.

    logits: what the model gives, float32 [n, C]. positions: name -> those to measure; a domain that
    is not named is measured whole. between: called between forward passes; may raise to stop.

    Of several processes each measures every G-th domain, and all get all measures. Sums are kept on
    the device in float64; the host reads once, at the end. Raises UserError: a metric fails.
    """
    group, chosen = processes or Processes(), positions or {}
    precise = torch.float32 if images.device.type == "mps" else torch.float64
    sums = torch.zeros(len(parts), 4 + len(metrics), dtype=precise, device=images.device)
    with evaluating(model):
        for number, (name, part) in enumerate(parts.items()):
            if number % group.size == group.index:
                positions_of = chosen.get(name)
                _add_up(sums[number], logits, images, part, positions_of, loss, metrics, between)
        sums = group.sum(sums, between)
    measures: Measures = {}
    for name, (total, correct, count, constant, *values) in zip(parts, sums.tolist(), strict=True):
        measures[name] = {"loss": total / count}
        if not math.isnan(correct):
            measures[name]["accuracy"] = 100.0 * correct / count
        measures[name] |= {"examples": int(count), "constant": bool(constant)}
        measures[name] |= dict(zip(metrics, values, strict=True))
    return measures


def _add_up(
    sums: Tensor,
    logits: Logits,
    images: Images,
    part: Part,
    positions: Tensor | None,
    loss: Loss,
    metrics: Sequence[str],
    between: Callable[[], None],
) -> None:
    """Fill in sums [4 + metrics]: loss, right predictions (NaN: labels are numbers), examples, 1
    for a constant prediction, and the metrics' values, of all logits."""
    absent = None if images.absent is None else images.absent[part.number]
    ends = torch.full((4,), 2**31, device=images.device)  # least predicted, −most, least label, …
    kept: list[tuple[Tensor, Tensor]] = []
    for batch, labels in images.chunks(part, images_at_once(images), positions):
        z = masked(logits(batch), absent)
        correct = sums.new_tensor(math.nan)
        if labels.ndim == 1:
            predicted = z.argmax(1)
            correct = (predicted == labels).sum().to(sums.dtype)
            both_ways = torch.stack([predicted, -predicted, labels, -labels])
            ends = torch.minimum(ends, both_ways.amin(1))
        if metrics:  # copies: a loss of the user's own may write into what it is given
            kept.append((z.clone(), labels.clone()))
        total = loss(z, labels).to(sums.dtype).sum()
        sums[:3] += torch.stack([total, correct, torch.full_like(total, len(labels))])
        between()
    sums[3] = (ends[0] == -ends[1]) & (ends[2] < -ends[3])
    if metrics:
        z, labels = (torch.cat(parts) for parts in zip(*kept, strict=True))
        for place, name in enumerate(metrics, 4):
            sums[place] = metric_value(name, z, labels, sums.dtype)


def metric_value(
    name: str, logits: Tensor, labels: Tensor, dtype: torch.dtype = torch.float64
) -> Tensor:
    """The metric of these logits [n, C], a scalar. Raises UserError: it gives no number."""
    metric = METRICS[name]
    try:
        value = metric.of(logits.clone(), labels.clone())
        return torch.as_tensor(value, dtype=dtype).detach().reshape(())
    except Exception as error:  # of the user's own function, of any kind
        raise UserError(
            f"evaluation.metrics=[{name}]: {metric.of.__module__}.{metric.of.__qualname__} gives "
            f"no number for logits {list(logits.shape)} and labels {list(labels.shape)}: "
            f"{first_line(error)}"
        ) from None


def predictions(logits: Logits, model: nn.Module, images: Images) -> dict[str, np.ndarray]:
    """The arrays of predictions.npz: for every domain's validation and test split
    `<split>/<domain>/id` (int64 [n], row in the array of images), `…/label` (int64 [n], or float32
    or int64 [n, L]) and `…/logits` (float16 [n, C]): as the model gives them, of all classes,
    whether or not the domain has them; and `…/file` (text [n]) where each image has a file of its
    own. Images are seen as in a measurement."""
    arrays: dict[str, np.ndarray] = {}
    with evaluating(model):
        for split in ("val", "test"):
            for name, part in images.parts[split].items():
                chunks = images.chunks(part, images_at_once(images))
                both = [(logits(batch).half(), labels) for batch, labels in chunks]
                z, labels = (torch.cat(parts) for parts in zip(*both, strict=True))
                arrays[f"{split}/{name}/id"] = part.ids.numpy()
                arrays[f"{split}/{name}/label"] = labels.cpu().numpy()
                arrays[f"{split}/{name}/logits"] = z.cpu().numpy()
                if images.files is not None:
                    files = [images.files[row] for row in part.ids]
                    arrays[f"{split}/{name}/file"] = np.array(files)
    return arrays


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


def images_at_once(images: Images) -> int:
    """How many images one forward pass of a measurement takes.

    More on a GPU with more memory; on all of it, not on what is free just now: a pass over another
    number of images may round differently, and the same command shall give the same bytes.
    """
    pixels = PIXELS_AT_ONCE
    if images.device.type == "cuda":
        memory = torch.cuda.get_device_properties(images.device).total_memory
        pixels = max(pixels, min(MOST_PIXELS, memory // BYTES_A_PIXEL))
    return max(1, pixels // math.prod(images.size))


def worst(measures: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """f_w = max_k f_k and Acc_w = min_k Acc_k, where there are accuracies; NaN where one is."""
    found = {}
    for name in MEASURED:
        values = [one[name] for one in measures.values() if name in one]
        if len(values) == len(measures):
            found[name] = float(reducers.worst(values, METRICS[name].better))
    return found
