"""Features in place of images: what the head of a model takes, of every example, computed once."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch

from robustmd.training.data import Batches, Images, Part
from robustmd.training.learner import Learner
from robustmd.training.measure import evaluating, images_at_once

RTOL, ATOL = 1e-4, 1e-5  # of logits, between the whole model's and its head's


def features_of(
    batches: Batches, learner: Learner, head: str, between: Callable[[], None]
) -> Images | str:
    """The same data with features float32 [N, d] for the model's part `head`; or why there are
    none, in words. `between` is called between forward passes and may raise to stop."""
    images = batches.images
    if batches.augmentation or batches.draw_once(0).keys() & {"corners", "keys"}:
        return "the training images' views are random"
    inputs: list[torch.Tensor] = []
    part = learner.model.get_submodule(head)
    handle = part.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    found: list[torch.Tensor] = []
    try:
        with evaluating(learner.model):
            for of_split in images.parts.values():
                for one in of_split.values():
                    for batch, _ in images.chunks(one, images_at_once(images)):
                        inputs.clear()
                        logits = learner.logits(batch)
                        is_vector = len(inputs) == 1 and inputs[0].dim() == 2
                        features = inputs[0].float() if is_vector else logits
                        again = learner.logits(features, part) if is_vector else None
                        if again is None or not torch.allclose(again, logits, RTOL, ATOL):
                            return "the model's head is not all that comes after them"
                        found.append(features)
                        between()
    finally:
        handle.remove()
    return _of_features(images, torch.cat(found))


def _of_features(images: Images, features: torch.Tensor) -> Images:
    """The same data set with an example of features in each row, in the order of its parts."""
    result = copy.copy(images)
    result.images, result.size, result.variants = features, tuple(features.shape[1:]), None
    result.parts, labels, end = {split: {} for split in images.parts}, [], 0
    for split, parts in images.parts.items():
        for name, part in parts.items():
            start, end = end, end + len(part)
            result.parts[split][name] = Part(part.number, torch.arange(start, end), part.ids)
            labels.append(images.labels[part.ids.to(images.device)])
    result.labels = torch.cat(labels)
    return result
