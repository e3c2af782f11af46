"""The file of weights that a model starts from: find it, check it, load it."""

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
from robustmd.errors import UserError, first_line, listed
from robustmd.registry import BackboneFacts
from robustmd.runs.files import hex_digest


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights. sha256: the hex checksum of its bytes."""

    path: Path
    sha256: str


def find_weights(backbone: Any) -> WeightsFile | None:
    """The file that `backbone.weights` means; None for "none" and for backbones without the key.

    For published weights it is the file in the library's cache; nothing is fetched.

    Raises UserError: it is not there, cannot be read, or is not the published one.
    """
    chosen = getattr(backbone, "weights", "none")
    if chosen == "none":
        return None
    if not (isinstance(backbone, Pretrained) and names_weights(chosen)):
        path = Path(chosen)
        sha256 = _sha256(path, chosen)
        _read(path)  # what is no state dict is refused before any work
        return WeightsFile(path, sha256)
    try:
        published = backbone.published()
    except ValueError as error:
        raise UserError(f"backbone={backbone.name}: {error}") from None
    path = published.path
    if not path.is_file():
        raise UserError(
            f"backbone.weights={chosen}: their file is not there; {published.fetch}, give a file "
            "with backbone.weights=PATH, or train from scratch with backbone.weights=none"
        )
    sha256 = _sha256(path, chosen)
    if not sha256.startswith(published.sha256_start):
        raise UserError(
            f"backbone.weights={chosen}: {path} is not the published file, or not all of it (its "
            f"sha256 begins with {sha256[:8]}, not {published.sha256_start}); {published.fetch}"
        )
    return WeightsFile(path, sha256)


def load_weights(
    model: nn.Module, weights: WeightsFile, backbone: Any, facts: BackboneFacts
) -> str:
    """Give the model a file's weights, except those of its head; returns a note for the user.

    Args:
        model: as `build_backbone` returns it.
        weights: a state dict with the model's keys and shapes; its head may have any classes.

    Raises:
        UserError: another kind of file, or of another model; one line.
    """
    head = head_of(backbone, facts)
    state = _read(weights.path)
    if isinstance(backbone, Pretrained):
        try:
            state = backbone.adapt_state(state, facts)
        except Exception as error:  # over another model's weights a library may raise anything
            words = f"no state dict of this model ({first_line(error)})"
            raise UserError(f"backbone.weights={weights.path}: {words}") from None
    body = {key: value for key, value in state.items() if not key.startswith(f"{head}.")}
    try:
        missing, unknown = model.load_state_dict(body, strict=False)
    except RuntimeError as error:  # sizes differ; torch names the parameters line by line
        faults = [str(error).strip().splitlines()[1].strip()]
    else:
        missing = [
            key
            for key in missing  # old files lack the counts of batch norm
            if not key.startswith(f"{head}.") and not key.endswith("num_batches_tracked")
        ]
        faults = [f"lacks {listed(sorted(missing), 3)}"] if missing else []
        faults += [f"has unknown {listed(sorted(unknown), 3)}"] if unknown else []
    if faults:
        raise UserError(
            f"backbone.weights={weights.path}: no state dict of this model: {' and '.join(faults)}"
        )
    matrix = state.get(f"{head}.weight")
    classes = "no head" if matrix is None else f"a head of {len(matrix):,} classes"
    return (
        f"weights of {weights.path} (sha256 {weights.sha256[:12]}); it has {classes}; "
        f"a new, random head for {facts.num_classes} classes is in its place"
    )


def _sha256(path: Path, written: str) -> str:
    try:
        with path.open("rb") as stream:
            return hex_digest(stream, hashlib.sha256())
    except OSError as error:
        raise UserError(
            f"backbone.weights={written}: cannot read {path} ({error.strerror}); must be none, "
            "a name of published weights or the path of a state dict"
        ) from error


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
        names = [str(key) for key in state] if isinstance(state, Mapping) else [str(type(state))]
        raise UserError(
            f"backbone.weights={path}: holds {listed(names, 3) or 'nothing'}, not a state dict of "
            "tensors; save model.state_dict() alone"
        )
    return state
