"""Backbones that may begin with weights, and those of a library of models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import Self

from robustmd.config.paths import names_weights, whole
from robustmd.config.ranges import PUBLISHED_WEIGHTS, RGB, key
from robustmd.registry import BackboneFacts, Settings

if TYPE_CHECKING:
    import torch
    from torch import nn

    State = Mapping[str, torch.Tensor]

USUAL_SIDES = (32, 64, 128, 224, 256, 299, 384, 448, 512)  # pixels; some model takes each


@dataclass(frozen=True)
class Published:
    """A file of weights that a library publishes; nothing is fetched here.

    path: where its cache keeps it, whether it is there or not. fetch: how it gets there, in words.
    begins: what the hex sha256 of the file begins with.
    """

    path: Path
    fetch: str
    begins: str = ""


@dataclass
class Pretrained(Settings):
    """A backbone that may start from weights."""

    weights: str = key("none", PUBLISHED_WEIGHTS, "what it starts from")

    def __post_init__(self) -> None:
        """A relative path means another file elsewhere, so it must not be a run's identity."""
        if self.weights and not names_weights(self.weights):
            self.weights = whole("backbone.weights", self.weights)

    def published(self) -> Published:
        """Those that `weights` names. Raises ValueError for another name."""
        raise NotImplementedError

    def fitted(self, state: State, facts: BackboneFacts) -> State:
        """A state dict of the library, as this very model names and sizes its parameters."""
        return state


@dataclass
class Library(Pretrained):
    """A library's model, which sees images on the scale (u − mean)/std, u = pixel/255."""

    model: str = key("", help="by the name that it has there")
    mean: list[float] | None = key(None, RGB, "of its scale; null: as of its weights")
    std: list[float] | None = key(None, RGB, "of its scale, likewise")

    def bare(self, facts: BackboneFacts) -> nn.Module:
        """The library's model with a head for the classes. Raises ValueError, RuntimeError or
        AssertionError for images that it cannot take."""
        raise NotImplementedError

    def scale(self) -> tuple[Sequence[float], Sequence[float]]:
        """The mean and std that go with its weights."""
        raise NotImplementedError

    def check(self) -> None:
        if (self.mean is None) != (self.std is None) or min(self.std or [1.0]) <= 0:
            raise ValueError("mean and std go together, three numbers each, those of std > 0")

    def settled(self, trained: Sequence[str]) -> Self:
        """With the scale written out where it is not that of all backbones."""
        if self.weights == "none" or self.mean is not None:
            return self
        mean, std = ([float(x) for x in values] for values in self.scale())
        return dataclasses.replace(self, mean=mean, std=std)

    def build(self, facts: BackboneFacts) -> nn.Module:
        from robustmd.backbones.networks.changes import scale_input  # noqa: PLC0415 - torch

        model = self.bare(facts)
        if self.mean is not None and self.std is not None:
            scale_input(model, self.mean, self.std)
        return model

    def check_images(self, facts: BackboneFacts) -> None:
        """Raises ValueError: it takes no images of that size; names one that it takes."""
        error = self._refusal(facts)
        if error is None:
            return

        def takes(side: int) -> bool:
            return self._refusal(dataclasses.replace(facts, image_size=(side, side))) is None

        (height, width), words = facts.image_size, f": {error}".partition("\n")[0]
        low = min(height, width)
        high = next((side for side in USUAL_SIDES if side > low and takes(side)), None)
        if high is not None:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if takes(middle) else (middle, high)
            words = f", but of {high}×{high}"
        raise ValueError(f"model={self.model} takes no images of {height}×{width} px{words}")

    def _refusal(self, facts: BackboneFacts) -> Exception | None:
        """What the model says to images of that size; tried without any numbers."""
        import torch  # noqa: PLC0415

        from robustmd.backbones.networks.changes import without_numbers  # noqa: PLC0415

        try:
            with torch.no_grad():
                model = without_numbers(lambda: self.bare(facts))
                logits = model(torch.empty(2, 3, *facts.image_size, device="meta"))
        except (ValueError, RuntimeError, AssertionError) as error:
            return error
        fits = getattr(logits, "shape", None) == (2, facts.num_classes)
        return None if fits else ValueError("it does not give the classes' logits alone")
