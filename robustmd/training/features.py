"""Features in place of images: what the head of a model takes, of every example, computed once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from robustmd.domains.domain_set import Views
from robustmd.training.data import Batches, Images
from robustmd.training.learner import Learner
from robustmd.training.measure import evaluating, images_at_once

RTOL, ATOL = 1e-4, 1e-5  # of logits, between the whole model's and its head's


def features_of(
    batches: Batches, learner: Learner, head: str, between: Callable[[], None]
) -> Images | str:
    """The same data with features float32 [N, d] for the model's part `head`; or why there are
    none, in words. `between` is called between forward passes and may raise to stop."""
    images = batches.images
    look = batches.drawn_block(0).look
    if batches.augmentation or look.corners is not None or look.keys is not None:
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
    made = copy.copy(images)
    made.images, made.variants, made.are_images = features, None, False
    made.size, made.parts, first = tuple(features.shape[1:]), {}, 0
    labels = []
    for split, of_split in images.parts.items():
        made.parts[split] = {}
        for name, part in of_split.items():
            rows = np.arange(first, first + len(part))
            plain = replace(part, rows=rows, views=Views(), turns=np.zeros(1, dtype=np.int64))
            made.parts[split][name] = plain
            stored = torch.from_numpy(part.rows.repeat(len(part.turns))).to(images.device)
            labels.append(images.labels[stored])
            first += len(part)
    made.labels = torch.cat(labels)
    return made
