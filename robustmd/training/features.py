"""Features in place of images: what the head of a model takes, of every example, computed once."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch

from robustmd.domains.examples import Views
from robustmd.training.batches import BatchStream
from robustmd.training.learner import Learner
from robustmd.training.measurement import evaluating, images_at_once
from robustmd.training.pool import ResidentExamples, Splits, chunks

RTOL, ATOL = 1e-4, 1e-5  # of logits, between the whole model's and its head's


def features_of(
    splits: Splits, batches: BatchStream, learner: Learner, head: str, between: Callable[[], None]
) -> dict[str, dict[str, ResidentExamples]] | str:
    """The same splits with features for the model's part `head`; or why there are none, in words.

    `between` is called between forward passes and may raise to stop.
    """
    drawn = batches.draw_block(0)._replace(domains=None)
    if not all(part is drawn.positions or part is None for part in drawn):
        return "the training images' views are random"
    part = learner.in_precision(learner.model.get_submodule(head))
    inputs: list[torch.Tensor] = []
    handle = part.model.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    found: dict[str, list[torch.Tensor]] = {split: [] for split in splits}
    try:
        with evaluating(learner.logits):
            for split, domains in splits.items():
                for examples in domains.values():
                    for images, _ in chunks(examples, images_at_once(examples)):
                        inputs.clear()
                        logits = learner.logits(images)
                        is_vector = len(inputs) == 1 and inputs[0].dim() == 2
                        features = inputs[0].float() if is_vector else logits
                        if not is_vector or not torch.allclose(
                            part(features), logits, rtol=RTOL, atol=ATOL
                        ):
                            return "the model's head is not all that comes after them"
                        found[split].append(features)
                        between()
    finally:
        handle.remove()
    return {split: _placed(splits, split, parts) for split, parts in found.items()}


def _placed(splits: Splits, split: str, parts: list[torch.Tensor]) -> dict[str, ResidentExamples]:
    """A split whose images are features, float32 [N, 1, d, 1], which no view changes: all domains'
    in one array, so that one gather serves them all."""
    placed: dict[str, ResidentExamples] = {}
    if not parts:
        return placed
    features, first = torch.cat(parts)[:, None, :, None], 0
    for name, examples in splits[split].items():
        placed[name] = one = copy.copy(examples)
        one.images, one.image_size = features, (1, features.shape[2])
        one.rows = torch.arange(first, first + len(examples))
        one.views, one.noise_start = Views(), 0
        first += len(examples)
    return placed
