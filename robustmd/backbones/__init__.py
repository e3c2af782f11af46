"""The backbones, one file each: their settings, and how the model is built.

Every module here is imported, so that a new file is a new backbone.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from robustmd.backbones.library import Library
from robustmd.errors import UserError
from robustmd.registry import BACKBONES, BackboneFacts

if TYPE_CHECKING:
    from torch import nn

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def build_backbone(backbone: Any, facts: BackboneFacts) -> nn.Module:
    """The model of a backbone's settings, with random weights of torch's own generator.

    What `backbone.freeze` and `freeze_bn` keep as it is, is in evaluation mode, the rest in
    training mode.

    Raises:
        UserError: the images are too small for it, or it refuses a combination of its settings.
    """
    from torch import nn  # noqa: PLC0415 - settings are checked without torch

    from robustmd.backbones.networks import changes  # noqa: PLC0415

    size, smallest = facts.image_size, BACKBONES.flag(backbone.name, "smallest")
    if min(size) < smallest:
        raise UserError(
            f"backbone={backbone.name}: images are {'×'.join(map(str, size))} px; "
            f"it needs at least {smallest}×{smallest}"
        )
    if len(size) > 2 and isinstance(backbone, Library):
        raise UserError(
            f"backbone={backbone.name}: takes images, and these are features {list(size[1:])}; "
            "give a model of your own"
        )
    try:
        if isinstance(backbone, Library):
            backbone.check_images(facts)
        model = backbone.build(facts)
    except ValueError as error:
        raise UserError(f"backbone={backbone.name}: {error}") from None
    if not isinstance(model, nn.Module):
        raise UserError(
            f"backbone={backbone.name}: build returned {type(model).__name__}; it must return a "
            "torch.nn.Module"
        )
    frozen = backbone.freeze == "features"
    if backbone.dropout is not None:
        changes.drop_out(model, head_of(backbone, facts), backbone.dropout, only_head=frozen)
    if backbone.freeze_bn:
        changes.freeze_batch_norm(model)
    if frozen:
        changes.freeze_all_but(model, head_of(backbone, facts))
    return model


def head_of(backbone: Any, facts: BackboneFacts) -> str:
    """The head's name in the model: as the decorator said it, else the one layer whose size follows
    the number of classes.

    Raises:
        UserError: there is not one such layer, or the model cannot be built without memory.
    """
    from robustmd.backbones.networks.changes import without_numbers  # noqa: PLC0415 - as above

    said: str | None = BACKBONES.flag(backbone.name, "head")
    if said is not None:
        return said
    try:
        more = replace(facts, num_classes=facts.num_classes + 1)
        mine = without_numbers(lambda: backbone.build(facts)).state_dict()
        larger = without_numbers(lambda: backbone.build(more)).state_dict()
        layers = {k.rpartition(".")[0] for k in mine if mine[k].shape != larger[k].shape}
    except (RuntimeError, KeyError):
        layers = set()
    if len(layers) != 1:
        raise UserError(
            f"backbone={backbone.name}: no one layer has the number of classes as its size, so "
            "weights, freeze, dropout and head_learning_rate cannot tell the head; a backbone of "
            "your own says it: @robustmd.backbone(NAME, head=LAYER)"
        )
    return layers.pop()
