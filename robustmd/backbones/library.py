"""Models of torchvision and timm by the names that they have there, and `backbone=resnet18`."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import field_validator
from typing_extensions import Self

from robustmd.config.paths import names_weights, whole
from robustmd.config.ranges import PUBLISHED_WEIGHTS, RGB, WEIGHTS, key
from robustmd.errors import UserError, first_line
from robustmd.extras import install, required
from robustmd.registry import Backbone, BackboneFacts, backbone

if TYPE_CHECKING:
    import torch
    from torch import nn

    State = Mapping[str, torch.Tensor]

# Of ILSVRC2012's images in [0, 1], for red, green and blue: torchvision's own constants.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
# Built without their second heads, and with the input that their published weights want.
INCEPTIONS = ("googlenet", "inception_v3")
SECOND_HEADS = ("aux1.", "aux2.", "AuxLogits.")
# DenseNet's published weights have names from before a module's could hold no dot.
OLD_DENSENET_NAME = re.compile(r"(.*denselayer\d+\.(?:norm|relu|conv))\.([12]\.\w+)")


@dataclass(frozen=True)
class Published:
    """A file of published weights in its library's cache, there or not. We never fetch it.

    fetch: what the user does to get it there. sha256_start: the first digits of its sha256.
    """

    path: Path
    fetch: str
    sha256_start: str = ""


class Pretrained(Backbone):
    """A backbone that may start from weights."""

    weights: str = key("none", PUBLISHED_WEIGHTS, "what it starts from")

    @field_validator("weights")
    @classmethod
    def _absolute(cls, weights: str) -> str:
        """A path is part of the run's identity."""
        is_path = weights and not names_weights(weights)
        return whole("backbone.weights", weights) if is_path else weights

    def published(self) -> Published:
        """The file that the name `weights` stands for. Raises ValueError for an unknown name."""
        raise NotImplementedError

    def adapt_state(self, state: State, facts: BackboneFacts) -> State:
        """A state dict of the library, with this model's names and sizes."""
        return state


@backbone("resnet18", head="fc", smallest=32, order=1)
class ResNet18(Pretrained):
    """torchvision's ResNet-18, on ImageNet's scale whatever its weights."""

    weights: str = key("imagenet", WEIGHTS, "what it starts from; a path is made absolute")

    def build(self, facts: BackboneFacts) -> nn.Module:
        from torchvision.models import resnet18  # noqa: PLC0415 - takes seconds

        from robustmd.backbones.changes import scale_input  # noqa: PLC0415 - torch

        model = resnet18(num_classes=facts.num_classes)
        scale_input(model, IMAGENET_MEAN, IMAGENET_STD)
        return model

    def published(self) -> Published:
        return TorchVision(model="resnet18", weights="IMAGENET1K_V1").published()


class Library(Pretrained):
    """A library's model, which sees images on the scale (u − mean)/std, u = pixel/255."""

    model: str = key("", help="by the name that it has there")
    mean: list[float] | None = key(None, RGB, "of its scale; null: as of its weights")
    std: list[float] | None = key(None, RGB, "of its scale, likewise")

    def create(self, facts: BackboneFacts) -> nn.Module:
        """The library's model with a head for the classes."""
        raise NotImplementedError

    def scale(self) -> tuple[Sequence[float], Sequence[float]]:
        """The mean and std that its weights were trained with."""
        raise NotImplementedError

    def check(self) -> None:
        if (self.mean is None) != (self.std is None) or min(self.std or [1.0]) <= 0:
            raise ValueError("mean and std go together, three numbers each, those of std > 0")

    def settled(self, trained: Sequence[str]) -> Self:
        """The same, with the scale of its weights written out: it is part of a run's identity."""
        if self.weights == "none" or self.mean is not None:
            return self
        mean, std = ([float(x) for x in values] for values in self.scale())
        return self.model_copy(update={"mean": mean, "std": std})

    def build(self, facts: BackboneFacts) -> nn.Module:
        from robustmd.backbones.changes import scale_input  # noqa: PLC0415 - torch

        self.check_images(facts)
        model = self.create(facts)
        if self.mean is not None and self.std is not None:
            scale_input(model, self.mean, self.std)
        return model

    def check_images(self, facts: BackboneFacts) -> None:
        """Raises ValueError if the model takes no such images; no numbers are computed."""
        import torch  # noqa: PLC0415

        from robustmd.backbones.changes import without_numbers  # noqa: PLC0415

        size = "×".join(map(str, facts.image_size))
        if len(facts.image_size) > 2:
            raise ValueError(
                f"takes images, and these are features {list(facts.image_size[1:])}; give a model "
                "of your own"
            )
        try:
            with torch.no_grad():
                model = without_numbers(lambda: self.create(facts))
                logits = model(torch.empty(2, 3, *facts.image_size, device="meta"))
        except (ValueError, RuntimeError, AssertionError) as error:
            raise ValueError(
                f"model={self.model} takes no images of {size} px: {first_line(error)}"
            ) from None
        if getattr(logits, "shape", None) != (2, facts.num_classes):
            raise ValueError(f"model={self.model} returns more than the logits of the classes")


@backbone("torchvision", order=2)
class TorchVision(Library):
    """Any of torchvision's models for classification; weights are called IMAGENET1K_V1, DEFAULT."""

    model: str = key("resnet50", help="by the name that it has there")

    def check(self) -> None:
        super().check()
        import torchvision  # noqa: PLC0415 - takes seconds

        models = torchvision.models.list_models(module=torchvision.models)
        if self.model not in models:
            raise _no_such_model(self.model, f"torchvision {torchvision.__version__}", models)
        if names_weights(self.weights) and self.weights != "none":
            self._weights_entry()

    def create(self, facts: BackboneFacts) -> nn.Module:
        from torchvision.models import get_model  # noqa: PLC0415

        arguments: dict[str, Any] = {}
        if self.model in INCEPTIONS:
            scaled = self.weights != "none"
            arguments = {"aux_logits": False, "init_weights": True, "transform_input": scaled}
        elif self.model.startswith("maxvit"):
            arguments = {"input_size": facts.image_size}
        elif self.model.startswith("vit"):
            arguments = {"image_size": facts.image_size[0]}
        return get_model(self.model, num_classes=facts.num_classes, **arguments)

    def published(self) -> Published:
        import torch  # noqa: PLC0415

        url = str(self._weights_entry().url)
        path = Path(torch.hub.get_dir()) / "checkpoints" / Path(urlsplit(url).path).name
        return Published(path, f"put {url} at {path}", path.stem.rpartition("-")[2])

    def scale(self) -> tuple[Sequence[float], Sequence[float]]:
        transforms = self._weights_entry().transforms()
        return transforms.mean, transforms.std

    def adapt_state(self, state: State, facts: BackboneFacts) -> State:
        from torchvision.models.vision_transformer import (  # noqa: PLC0415
            interpolate_embeddings,
        )

        if self.model in INCEPTIONS:
            return {k: v for k, v in state.items() if not k.startswith(SECOND_HEADS)}
        if self.model.startswith("densenet"):
            return {OLD_DENSENET_NAME.sub(r"\1\2", k): v for k, v in state.items()}
        if self.model.startswith("vit") and "encoder.pos_embedding" in state:
            patch = int(self.model.rpartition("_")[2])
            return interpolate_embeddings(facts.image_size[0], patch, dict(state))
        return state

    def _weights_entry(self) -> Any:
        """torchvision's entry for the published weights; for a file, the model's default ones."""
        from torchvision.models import get_model_weights  # noqa: PLC0415

        entries = get_model_weights(self.model).__members__
        name = self.weights if names_weights(self.weights) else "DEFAULT"
        if name not in entries:
            raise ValueError(
                f"weights={name}: for model={self.model} there are {', '.join(entries)}, none, or "
                "the path of a state dict"
            )
        return entries[name]


@backbone("timm", order=3)
class Timm(Library):
    """Any model of PyTorch Image Models; weights=pretrained: those of its tag, from its cache."""

    model: str = key("vit_small_patch16_224", help="by the name that it has there")

    def check(self) -> None:
        super().check()
        timm = _timm()
        if not timm.is_model(self.model):
            raise _no_such_model(self.model, f"timm {timm.__version__}", timm.list_models())
        self._pretrained_cfg()
        if names_weights(self.weights) and self.weights not in ("none", "pretrained"):
            raise ValueError(
                f"weights={self.weights}: must be none, pretrained or the path of a state dict"
            )

    def create(self, facts: BackboneFacts) -> nn.Module:
        cfg = self._pretrained_cfg()
        size = {"img_size": facts.image_size} if cfg and cfg.fixed_input_size else {}
        return _timm().create_model(self.model, num_classes=facts.num_classes, **size)

    def published(self) -> Published:
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - timm brings it

        cfg = self._pretrained_cfg()
        if cfg is None or not cfg.hf_hub_id:
            raise ValueError(f"weights=pretrained: timm publishes none for model={self.model}")
        names = (
            (cfg.hf_hub_filename,)
            if cfg.hf_hub_filename
            else ("model.safetensors", "pytorch_model.bin")
        )
        cached = [try_to_load_from_cache(cfg.hf_hub_id, name) for name in names]
        path = next((path for path in cached if isinstance(path, str)), names[0])
        call = f"import timm; timm.create_model('{self.model}', pretrained=True)"
        return Published(Path(path), f'let timm fetch it: python -c "{call}"')

    def scale(self) -> tuple[Sequence[float], Sequence[float]]:
        cfg = self._pretrained_cfg()
        return ((0.5,) * 3, (0.25,) * 3) if cfg is None else (cfg.mean, cfg.std)

    def adapt_state(self, state: State, facts: BackboneFacts) -> State:
        model = self.create(facts)
        adapt = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
        return state if adapt is None else adapt(dict(state), model)

    def _pretrained_cfg(self) -> Any:
        """timm's own record of the model's weights; None if it has none."""
        try:
            return _timm().get_pretrained_cfg(self.model)
        except RuntimeError as error:  # a tag that the model does not have
            raise ValueError(f"model={self.model}: {error}") from None


def _timm() -> Any:
    try:
        import timm  # noqa: PLC0415 - an extra
    except ImportError:
        raise UserError(
            f"backbone=timm: timm is not installed; {install(required('timm'))}"
        ) from None
    return timm


def _no_such_model(model: str, library: str, known: Sequence[str]) -> ValueError:
    near = ", ".join(difflib.get_close_matches(model, known, n=3, cutoff=0.4))
    words = f"; near are {near}" if near else ""
    return ValueError(f"model={model}: {library} has no such model for classification{words}")
