"""What the final model says of every held-out example."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from robustmd.training.images import ResidentExamples
from robustmd.training.measurement import images_at_once
from robustmd.training.pool import chunks


def predict(
    model: nn.Module, splits: Mapping[str, Mapping[str, ResidentExamples]]
) -> dict[str, np.ndarray]:
    """The arrays of predictions.npz.

    Args:
        model: images -> logits [n, C].
        splits: split -> domain -> examples.

    Returns:
        for every split and domain, `<split>/<domain>/id` (int64 [n], row in the prepared arrays),
        `…/label` (int64 [n]) and `…/logits` (float16 [n, C]): as the model gives them, of all
        classes, whether or not the domain has them (data.labels=per_domain masks them elsewhere).
        Images are seen as in a measurement: cropped in the centre, with each image's own noise.
    """
    arrays: dict[str, np.ndarray] = {}
    model.eval()
    with torch.inference_mode():
        for split, domains in splits.items():
            for name, examples in domains.items():
                parts = chunks(examples, images_at_once(examples))
                logits = torch.cat([model(images).half() for images, _ in parts])
                prefix = f"{split}/{name}"
                arrays[f"{prefix}/id"] = examples.ids().cpu().numpy()
                arrays[f"{prefix}/label"] = examples.labels.cpu().numpy()
                arrays[f"{prefix}/logits"] = logits.cpu().numpy()
    model.train()
    return arrays
