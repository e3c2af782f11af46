"""Weights that a model begins with: published ones in a library's cache, or a state dict's."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from robustmd.backbones import head_of
from robustmd.backbones.library import Pretrained
from robustmd.config.paths import names_weights
from robustmd.errors import UserError, first_line
from robustmd.registry import BackboneFacts

BLOCK_BYTES = 1 << 22
SHOWN = 3  # keys of a longer list in a message


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights: path, and sha256, the hex checksum of its bytes."""

    path: Path
    sha256: str


def find_weights(backbone: Any) -> WeightsFile | None:
    """The file that `backbone.weights` means; None for "none" and for backbones without the key.

    Of published weights the file that their library itself would fetch, in the library's cache;
    nothing is fetched here.

    Raises UserError: it is not there, cannot be read, or is not the published one.
    """
    chosen = getattr(backbone, "weights", "none")
    if chosen == "none":
        return None
    if not (isinstance(backbone, Pretrained) and names_weights(chosen)):
        given = WeightsFile(Path(chosen), _sha256(Path(chosen), chosen))
        _read(given.path)  # what is no state dict is refused before any work
        return given
    try:
        published = backbone.published()
    except ValueError as error:
        raise UserError(f"backbone={backbone.name}: {error}") from None
    path, begins = published.path, published.begins
    if not path.is_file():
        raise UserError(
            f"backbone.weights={chosen}: their file is not there; {published.fetch}, give a file "
            "with backbone.weights=PATH, or train from scratch with backbone.weights=none"
        )
    found = WeightsFile(path, _sha256(path, chosen))
    if not found.sha256.startswith(begins):
        raise UserError(
            f"backbone.weights={chosen}: {path} is not the published file, or not all of it (its "
            f"sha256 begins with {found.sha256[:8]}, not {begins}); {published.fetch}"
        )
    return found


def load_weights(
    model: nn.Module, weights: WeightsFile, backbone: Any, facts: BackboneFacts
) -> str:
    """Give the model a file's weights, all but its head's; returns what to tell about it.

    Args:
        model: as `build_backbone` gives it, with a head for the classes at hand, which stays.
        weights: a state dict with the model's keys and shapes, the head's of any number of classes.

    Raises:
        UserError: another kind of file, or of another model; one line.
    """
    head, own = head_of(backbone, facts), model.state_dict()
    state = _fitted(weights, backbone, facts)
    ends = {key for key in (*own, *state) if key.startswith(f"{head}.")}
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
    model.load_state_dict({**own, **{k: v for k, v in state.items() if k not in ends}})
    before = state.get(f"{head}.weight")
    classes = "no head" if before is None else f"a head of {len(before):,} classes"
    return (
        f"weights of {weights.path} (sha256 {weights.sha256[:12]}); it has {classes}; "
        f"a new, random head for {facts.num_classes} classes is in its place"
    )


def _fitted(
    weights: WeightsFile, backbone: Any, facts: BackboneFacts
) -> Mapping[str, torch.Tensor]:
    state = _read(weights.path)
    if not isinstance(backbone, Pretrained):
        return state
    try:
        return backbone.fitted(state, facts)
    except Exception as error:  # over another model's weights a library may raise anything
        words = f"no state dict of this model ({first_line(error)})"
        raise UserError(f"backbone.weights={weights.path}: {words}") from None


def _sha256(path: Path, written: str) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
    except OSError as error:
        raise UserError(
            f"backbone.weights={written}: cannot read {path} ({error.strerror}); must be none, "
            "a name of published weights or the path of a state dict"
        ) from error
    return digest.hexdigest()


def _read(path: Path) -> Mapping[str, torch.Tensor]:
    """A state dict's tensors; nothing in the file is ever executed."""
    try:
        with warnings.catch_warnings():  # of other pickle protocols: it is read or it is not
            warnings.simplefilter("ignore")
            if path.suffix == ".safetensors":
                from safetensors.torch import load_file  # noqa: PLC0415 - timm brings it

                state: Any = load_file(path)
            else:
                state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # over bytes that are no state dict it may raise anything
        reason = first_line(error)[:100]
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
