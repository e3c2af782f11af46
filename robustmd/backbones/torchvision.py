"""`backbone=torchvision`: any of its models for classification, by the name that it has there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from robustmd.backbones.library import Library, Published
from robustmd.config.paths import names_weights
from robustmd.registry import BackboneFacts, backbone, key

if TYPE_CHECKING:
    from torch import nn

    from robustmd.backbones.library import State

# Without their second heads, and as their published weights want the input.
INCEPTIONS = ("googlenet", "inception_v3")
SECOND_HEADS = ("aux1.", "aux2.", "AuxLogits.")
# DenseNet's published weights have names from before a module's could hold no dot.
OLD_NAME = re.compile(r"(.*denselayer\d+\.(?:norm|relu|conv))\.([12]\.\w+)")


@backbone("torchvision", order=2)
class TorchVision(Library):
    """Any of torchvision's models for classification; weights are called IMAGENET1K_V1, DEFAULT."""

    model: str = key("resnet50", help="by the name that it has there")

    def check(self) -> None:
        super().check()
        from torchvision import models  # noqa: PLC0415 - takes seconds

        known = models.list_models(module=models)
        if self.model not in known:
            near = difflib.get_close_matches(self.model, known, n=3, cutoff=0.4)
            raise ValueError(
                f"model={self.model}: torchvision {_version()} has no such model for "
                f"classification; near are {', '.join(near or known)}"
            )
        if names_weights(self.weights) and self.weights != "none":
            self._chosen()

    def bare(self, facts: BackboneFacts) -> nn.Module:
        from torchvision.models import get_model  # noqa: PLC0415

        height, width = facts.image_size
        further: dict[str, Any] = {}
        if self.model in INCEPTIONS:
            scaled = self.weights != "none"
            further = {"aux_logits": False, "init_weights": True, "transform_input": scaled}
        elif self.model.startswith("maxvit"):
            further = {"input_size": (height, width)}
        elif self.model.startswith("vit"):
            further = {"image_size": height}
        return get_model(self.model, num_classes=facts.num_classes, **further)

    def published(self) -> Published:
        import torch  # noqa: PLC0415

        url = str(self._chosen().url)
        path = Path(torch.hub.get_dir()) / "checkpoints" / Path(urlsplit(url).path).name
        begins = path.stem.rpartition("-")[2]  # its files' names end in the checksum's start
        return Published(path, f"put {url} at {path}", begins)

    def scale(self) -> tuple[Sequence[float], Sequence[float]]:
        found = self._chosen().transforms()
        return found.mean, found.std

    def fitted(self, state: State, facts: BackboneFacts) -> State:
        from torchvision.models.vision_transformer import (  # noqa: PLC0415
            interpolate_embeddings,
        )

        if self.model in INCEPTIONS:
            state = {k: v for k, v in state.items() if not k.startswith(SECOND_HEADS)}
        if self.model.startswith("densenet"):
            state = {OLD_NAME.sub(r"\1\2", k): v for k, v in state.items()}
        if self.model.startswith("vit") and "encoder.pos_embedding" in state:
            patch = int(self.model.rpartition("_")[2])
            state = interpolate_embeddings(facts.image_size[0], patch, dict(state))
        return state

    def _chosen(self) -> Any:
        """The published weights by their name; of a file the model's default ones."""
        from torchvision.models import get_model_weights  # noqa: PLC0415

        known = get_model_weights(self.model)
        name = self.weights if names_weights(self.weights) else "DEFAULT"
        if name not in known.__members__:
            raise ValueError(
                f"weights={name}: for model={self.model} there are "
                f"{', '.join(known.__members__)}, none, or the path of a state dict"
            )
        return known[name]


def _version() -> str:
    import torchvision  # noqa: PLC0415

    return str(torchvision.__version__)
