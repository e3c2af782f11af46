"""Weights that a model begins with: torchvision's from its usual cache, or a state dict's file."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import nn

from robustmd.errors import UserError

BLOCK_BYTES = 1 << 22
SHOWN = 3  # keys of a longer list in a message


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights: path, and sha256, the hex checksum of its bytes."""

    path: Path
    sha256: str


def find_weights(backbone: Any) -> WeightsFile | None:
    """The file that `backbone.weights` means; None for "none" and for backbones without the key.

    "imagenet": the file that torchvision itself would fetch, in torch's folder of checkpoints
    ($TORCH_HOME/hub/checkpoints, else ~/.cache/torch/hub/checkpoints); nothing is fetched here.

    Raises UserError: it is not there, cannot be read, or is not torchvision's.
    """
    chosen = getattr(backbone, "weights", "none")
    if chosen == "none":
        return None
    if chosen != "imagenet":
        given = WeightsFile(Path(chosen), _sha256(Path(chosen), chosen))
        _read(given.path)  # what is no state dict is refused before any work
        return given
    url = _torchvision_url()
    path = Path(torch.hub.get_dir()) / "checkpoints" / Path(urlsplit(url).path).name
    if not path.is_file():
        raise UserError(
            f"backbone.weights=imagenet: torchvision's file is not there; put {url} at {path}, "
            "give a file with backbone.weights=PATH, or train from scratch with "
            "backbone.weights=none"
        )
    found = WeightsFile(path, _sha256(path, chosen))
    begins = path.stem.rpartition("-")[2]  # torchvision's file names end in the checksum's start
    if not found.sha256.startswith(begins):
        raise UserError(
            f"backbone.weights=imagenet: {path} is not torchvision's file, or not all of it (its "
            f"sha256 begins with {found.sha256[:8]}, not {begins}); put {url} in its place"
        )
    return found


def load_weights(model: nn.Module, weights: WeightsFile, head: str) -> str:
    """Give the model a file's weights, all but its head's; returns what to tell about it.

    Args:
        model: as built, with the head for the classes at hand, which stays as it is.
        weights: a state dict with the model's keys and shapes, the head's of any number of classes.
        head: the name of the model's last layer, a linear one.

    Raises:
        UserError: another kind of file, or of another model; one line.
    """
    state = _read(weights.path)
    own = model.state_dict()
    ends = {f"{head}.weight", f"{head}.bias"}
    optional = {key for key in own if key.endswith("num_batches_tracked")}  # not in old files
    missing = sorted(own.keys() - state.keys() - ends - optional)
    unknown = sorted(state.keys() - own.keys() - ends)
    other = sorted(
        f"{key} {list(state[key].shape)} for {list(own[key].shape)}"
        for key in (own.keys() & state.keys()) - ends
        if state[key].shape != own[key].shape
    )
    faults = [
        f"{words} {_few(keys)}"
        for words, keys in (("lacks", missing), ("has unknown", unknown), ("has", other))
        if keys
    ]
    if faults:
        raise UserError(
            f"backbone.weights={weights.path}: no state dict of this model: it "
            f"{' and '.join(faults)}"
        )
    kept = {key: value for key, value in state.items() if key not in ends}
    model.load_state_dict({**own, **kept})
    before = state.get(f"{head}.weight")
    classes = "no head" if before is None else f"a head of {before.shape[0]:,} classes"
    now = own[f"{head}.weight"].shape[0]
    return (
        f"weights of {weights.path} (sha256 {weights.sha256[:12]}); it has {classes}; "
        f"a new, random head for {now} classes is in its place"
    )


def _torchvision_url() -> str:
    from torchvision.models import ResNet18_Weights  # noqa: PLC0415 - takes seconds

    return str(ResNet18_Weights.IMAGENET1K_V1.url)


def _sha256(path: Path, written: str) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
    except OSError as error:
        raise UserError(
            f"backbone.weights={written}: cannot read {path} ({error.strerror}); must be imagenet, "
            "none or the path of a state dict"
        ) from error
    return digest.hexdigest()


def _read(path: Path) -> Mapping[str, torch.Tensor]:
    """A state dict's tensors; nothing in the file is ever executed."""
    try:
        with warnings.catch_warnings():  # of other pickle protocols: it is read or it is not
            warnings.simplefilter("ignore")
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # over bytes that are no state dict it may raise anything
        reason = str(error).strip().partition("\n")[0][:100] or type(error).__name__
        raise UserError(f"backbone.weights={path}: no file of weights ({reason})") from None
    is_state = isinstance(state, Mapping) and all(
        isinstance(key, str) and isinstance(value, torch.Tensor) for key, value in state.items()
    )
    if not is_state or not state:
        inside = _few([str(key) for key in state]) if isinstance(state, Mapping) else type(state)
        raise UserError(
            f"backbone.weights={path}: holds {inside or 'nothing'}, not a state dict of tensors; "
            "save model.state_dict() alone"
        )
    return state


def _few(keys: list[str]) -> str:
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return ", ".join(keys[:SHOWN]) + more
