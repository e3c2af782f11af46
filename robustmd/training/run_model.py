"""The model that a run ended with, or kept as its best, built anew from its record."""

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


def run_model(
    path: Path,
    summary: Mapping[str, Any],
    backbone: Any,
    facts: BackboneFacts,
    name: str = files.FINAL_MODEL,
) -> nn.Module:
    """The module with the weights of `checkpoints/final.pt`, or of `best.pt`, on the CPU.

    Args:
        path: the run's directory.
        summary: its summary.json.
        backbone: the settings that its config.yaml holds.
        facts: of what it was trained on.
        name: `files.FINAL_MODEL` or `files.BEST_MODEL`.

    Raises:
        UserError: there is no such model, or one that is not the run's.
    """
    recorded = summary.get("sha256")
    wanted = recorded.get(name) if isinstance(recorded, dict) else None
    state = checkpoints.load_model(path, name)
    if wanted not in (None, files.sha256(path / name)):
        raise UserError(f"{path}: {name} is not the model that it finished with")
    with memory_for(f"the model that {path / files.CONFIG} names"):
        expected = without_numbers(lambda: build_backbone(backbone, facts)).state_dict()
    sizes = {key: getattr(value, "shape", None) for key, value in state.items()}
    if sizes != {key: value.shape for key, value in expected.items()}:
        raise UserError(f"{path}: {name} does not fit its config.yaml")
    model = build_backbone(backbone, facts)
    model.load_state_dict(state)
    return model
