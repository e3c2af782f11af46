"""The model that a run ended with, built anew from its record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from robustmd.backbones import build_backbone
from robustmd.backbones.networks.changes import without_numbers
from robustmd.errors import UserError
from robustmd.registry import BackboneFacts
from robustmd.runs import checkpoints, files
from robustmd.training.records import memory_for


def final_model(
    path: Path, summary: Mapping[str, Any], backbone: Any, facts: BackboneFacts
) -> nn.Module:
    """The module with the weights of `checkpoints/final.pt`, on the CPU.

    Args:
        path: the run's directory.
        summary: its summary.json.
        backbone: the settings that its config.yaml holds.
        facts: of what it was trained on.

    Raises:
        UserError: there is no final model, or one that is not the run's.
    """
    recorded = summary.get("sha256")
    wanted = recorded.get(files.FINAL_MODEL) if isinstance(recorded, dict) else None
    state = checkpoints.load_final_model(path)
    if wanted not in (None, files.sha256(path / files.FINAL_MODEL)):
        raise UserError(f"{path}: its final model is not the one that it finished with")
    with memory_for(f"the model that {path / files.CONFIG} names"):
        expected = without_numbers(lambda: build_backbone(backbone, facts)).state_dict()
    sizes = {name: getattr(value, "shape", None) for name, value in state.items()}
    if sizes != {name: value.shape for name, value in expected.items()}:
        raise UserError(f"{path}: its final model does not fit its config.yaml")
    model = build_backbone(backbone, facts)
    model.load_state_dict(state)
    return model
