"""`backbone=timm`: any model of PyTorch Image Models, by the name that it has there."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustmd.backbones.library import Library, Published
from robustmd.config.paths import names_weights
from robustmd.errors import UserError
from robustmd.extras import install, required
from robustmd.registry import BackboneFacts, backbone, key

if TYPE_CHECKING:
    from torch import nn

    from robustmd.backbones.library import State

FILES = ("model.safetensors", "pytorch_model.bin")


@backbone("timm", order=3)
class Timm(Library):
    """Any model of PyTorch Image Models; weights=pretrained: those of its tag, from its cache."""

    model: str = key("vit_small_patch16_224", help="by the name that it has there")

    def check(self) -> None:
        super().check()
        timm = _timm()
        if not timm.is_model(self.model):
            near = difflib.get_close_matches(self.model, timm.list_models(), n=3, cutoff=0.4)
            words = f"; near are {', '.join(near)}" if near else ""
            raise ValueError(
                f"model={self.model}: timm {timm.__version__} has no such model{words}"
            )
        self._published_facts()
        if names_weights(self.weights) and self.weights not in ("none", "pretrained"):
            raise ValueError(
                f"weights={self.weights}: must be none, pretrained or the path of a state dict"
            )

    def bare(self, facts: BackboneFacts) -> nn.Module:
        found = self._published_facts()
        fixed = found is not None and found.fixed_input_size
        size = {"img_size": facts.image_size} if fixed else {}
        return _timm().create_model(self.model, num_classes=facts.num_classes, **size)

    def published(self) -> Published:
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - timm brings it

        facts = self._published_facts()
        if facts is None or not facts.hf_hub_id:
            raise ValueError(f"weights=pretrained: timm publishes none for model={self.model}")
        names = (facts.hf_hub_filename,) if facts.hf_hub_filename else FILES
        found = [try_to_load_from_cache(facts.hf_hub_id, name) for name in names]
        there = [path for path in found if isinstance(path, str)]
        call = f"import timm; timm.create_model('{self.model}', pretrained=True)"
        return Published(
            Path(there[0] if there else names[0]), f'let timm fetch it: python -c "{call}"'
        )

    def scale(self) -> tuple[Sequence[float], Sequence[float]]:
        facts = self._published_facts()
        return ((0.5,) * 3, (0.25,) * 3) if facts is None else (facts.mean, facts.std)

    def fitted(self, state: State, facts: BackboneFacts) -> State:
        model = self.bare(facts)
        fit = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
        return state if fit is None else fit(dict(state), model)

    def _published_facts(self) -> Any:
        """timm's own record of the model's weights; None where it has none."""
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
