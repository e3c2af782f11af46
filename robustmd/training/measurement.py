"""Loss and accuracy of every domain over a whole split: what tables and curves are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from robustmd.training.gathering import chunks
from robustmd.training.resident import ResidentExamples

PIXELS_AT_ONCE = 2**20  # image height × width × images in one forward pass
MOST_PIXELS = 2**24  # the same on a GPU with enough memory
BYTES_A_PIXEL = 2**13  # of a GPU, more than a forward pass takes of ours


@dataclass(frozen=True)
class Measure:
    """Mean cross entropy f_k in nats, accuracy Acc_k in percent, and over how many examples.

    `constant`: the model predicts one class for all of them, and they are of more than one.
    """

    loss: float
    accuracy: float
    examples: int
    constant: bool = False


def measure(
    model: nn.Module,
    domains: Mapping[str, ResidentExamples],
    positions: Mapping[str, torch.Tensor] | None = None,
    between: Callable[[], None] = lambda: None,
) -> dict[str, Measure]:
    """f_k and Acc_k of every domain, in evaluation mode.

    Args:
        model: images float [n, 3, H, W] -> logits [n, C].
        domains: name -> split to measure.
        positions: name -> the positions to measure; domains not named are measured whole.
        between: called between forward passes; may raise to stop the measurement.

    Sums are kept on the device (float64 where it has it); the host reads once, at the end.
    """
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            sums = torch.stack(
                [
                    _sums(model, split, None if positions is None else positions.get(name), between)
                    for name, split in domains.items()
                ]
            ).tolist()
    finally:
        model.train(was_training)
    return {
        name: Measure(loss / count, 100.0 * correct / count, int(count), bool(constant))
        for name, (loss, correct, count, constant) in zip(domains, sums, strict=True)
    }


def _sums(
    model: nn.Module,
    split: ResidentExamples,
    positions: torch.Tensor | None,
    between: Callable[[], None],
) -> torch.Tensor:
    """[4]: summed loss, correct predictions, examples; 1 for a constant prediction, else 0."""
    exact = torch.float32 if split.device.type == "mps" else torch.float64
    total = torch.zeros(3, dtype=exact, device=split.device)
    ends = torch.full((4,), 2**31, device=split.device)  # the least predicted, −most, least label …
    for images, labels in chunks(split, images_at_once(split), positions):
        logits = masked(model(images).float(), split.absent)
        loss = functional.cross_entropy(logits, labels, reduction="none").to(exact).sum()
        predicted = logits.argmax(1)
        correct = (predicted == labels).sum().to(exact)
        total += torch.stack([loss, correct, torch.full_like(loss, len(labels))])
        both_ways = torch.stack([predicted, -predicted, labels, -labels])
        ends = torch.minimum(ends, both_ways.amin(1))
        between()
    constant = (ends[0] == -ends[1]) & (ends[2] < -ends[3])
    return torch.cat([total, constant.to(exact)[None]])


def masked(logits: torch.Tensor, absent: torch.Tensor | None) -> torch.Tensor:
    """The logits with −∞ for the classes that a domain does not have: they then have probability 0,
    and loss and gradient are those of a head without their rows.

    Args:
        logits: float [..., C].
        absent: bool, of a shape that broadcasts to the logits'; None: no class is absent.
    """
    return logits if absent is None else logits.masked_fill(absent, -torch.inf)


def images_at_once(split: ResidentExamples) -> int:
    """How many images one forward pass of a measurement takes.

    More on a GPU with more memory; on all of it, not on what is free just now: a pass over another
    number of images may round differently, and the same command shall give the same bytes.
    """
    height, width = split.image_size
    pixels = PIXELS_AT_ONCE
    if split.device.type == "cuda":
        memory = torch.cuda.get_device_properties(split.device).total_memory
        pixels = max(pixels, min(MOST_PIXELS, memory // BYTES_A_PIXEL))
    return max(1, pixels // (height * width))


def worst(measures: Mapping[str, Measure]) -> dict[str, float]:
    """f_w = max_k f_k and Acc_w = min_k Acc_k, within one run; NaN where one of them is."""
    return {  # numpy's: Python's max over a NaN depends on the order
        "loss": float(np.max([m.loss for m in measures.values()])),
        "accuracy": float(np.min([m.accuracy for m in measures.values()])),
    }
