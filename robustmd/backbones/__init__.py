"""The backbones: which model a run trains, and how its settings change it."""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from robustmd.backbones import library, small  # noqa: F401 - their models register themselves
from robustmd.errors import UserError, first_line
from robustmd.registry import BACKBONES, Backbone, BackboneFacts, backbone, key

if TYPE_CHECKING:
    from torch import nn

UNUSUAL_SIZE = 7919  # a number of classes that is no other size in a model


@backbone("from_python")
class FromPython(Backbone):
    """`robustmd.train(model=…)`: `given` is that module, or what makes it; it is no setting."""

    object: str = key("", help="the class or function, and a digest of all that it holds")
    given: Any = Field(None, exclude=True)

    def build(self, facts: BackboneFacts) -> nn.Module:
        from torch import nn  # noqa: PLC0415 - as below

        given, what = self.given, f"model={self.object.rpartition('_')[0]}"
        if given is None:
            raise UserError(
                "backbone=from_python: its module was made in Python; give it to "
                "robustmd.train(…, model=MODULE), or to load_run(path, MODULE)"
            )
        if isinstance(given, nn.Module):
            try:
                if any(one.is_meta for one in (*given.parameters(), *given.buffers())):
                    raise TypeError("its parameters are on the device meta, without values")
                return copy.deepcopy(given).train()
            except (RuntimeError, TypeError) as error:
                raise UserError(
                    f"{what}: cannot be copied ({first_line(error)}); give a function that makes it"
                ) from None
        needed = [
            name
            for name, one in inspect.signature(given).parameters.items()
            if one.default is one.empty
            and one.kind in (one.POSITIONAL_OR_KEYWORD, one.POSITIONAL_ONLY)
        ]
        if len(needed) > 1:
            raise UserError(
                f"{what}: needs the arguments {', '.join(needed)}; must need none, or one, a "
                "BackboneFacts; give a function that makes it, as model=lambda facts: …"
            )
        model: nn.Module = given(facts) if needed else given()
        return model


def build_backbone(settings: Any, facts: BackboneFacts) -> nn.Module:
    """The model of a backbone's settings, with random weights from torch's own generator.

    What `backbone.freeze` and `freeze_bn` freeze is in evaluation mode, the rest in training mode.

    Raises:
        UserError: the images are too small for it, or it refuses a combination of its settings.
    """
    from torch import nn  # noqa: PLC0415 - settings are checked without torch

    from robustmd.backbones.changes import apply_changes  # noqa: PLC0415

    size, smallest = facts.image_size, BACKBONES.flag(settings.name, "smallest")
    if min(size) < smallest:
        raise UserError(
            f"backbone={settings.name}: images are {'×'.join(map(str, size))} px; "
            f"it needs at least {smallest}×{smallest}"
        )
    try:
        model = settings.build(facts)
    except ValueError as error:
        raise UserError(f"backbone={settings.name}: {error}") from None
    if not isinstance(model, nn.Module):
        raise UserError(
            f"backbone={settings.name}: build returned {type(model).__name__}; it must return a "
            "torch.nn.Module"
        )
    apply_changes(model, settings, lambda: head_of(settings, facts))
    return model


def head_of(settings: Any, facts: BackboneFacts) -> str:
    """The head's name in the model: as the decorator names it, else the one layer that has the
    number of classes as a size.

    Raises:
        UserError: there is not one such layer, or the model cannot be built without memory.
    """
    from robustmd.backbones.changes import without_numbers  # noqa: PLC0415 - as above

    registered: str | None = BACKBONES.flag(settings.name, "head")
    if registered is not None:
        return registered
    unusual = replace(facts, num_classes=UNUSUAL_SIZE)
    try:
        state = without_numbers(lambda: settings.build(unusual)).state_dict()
    except RuntimeError:
        state = {}
    layers = {name.rpartition(".")[0] for name in state if UNUSUAL_SIZE in state[name].shape}
    if len(layers) != 1:
        raise UserError(
            f"backbone={settings.name}: no one layer has the number of classes as its size, so "
            "weights, freeze, dropout and head_learning_rate cannot tell the head; a backbone of "
            "your own says it: @robustmd.backbone(NAME, head=LAYER)"
        )
    return layers.pop()
