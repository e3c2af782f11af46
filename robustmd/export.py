"""A trained model as one file for other programs, compared with the model before it is kept."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from robustmd.errors import UserError, first_line
from robustmd.extras import install, required
from robustmd.runs.files import write_atomically
from robustmd.training.data import normalised

FILES = {"onnx": "model.onnx", "torch-export": "model.pt2"}
TOLERANCE = 1e-4  # of logits, relative above 1: another runtime sums in another order
OPSET = 18


class Inputs(NamedTuple):
    """size: (H, W) of images, or (1, …) of features [n, …], or of tokens where `are_tokens`."""

    size: tuple[int, ...]
    are_tokens: bool = False


class FromPixels(nn.Module):
    """A model behind the scaling of its pixels: uint8 [n, H, W, 3] (or features, or tokens) ->
    logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Float32 [n, C]."""
        inputs = normalised(images) if images.dtype == torch.uint8 else images
        logits: torch.Tensor = self.model(inputs)
        return logits.float()


def export(model: nn.Module, inputs: Inputs, kind: str, out: Path | None) -> Path:
    """Write the model to `out` (None: the kind's file in the working folder).

    Args:
        model: in evaluation mode, on the CPU; see `FromPixels`.
        inputs: what it takes.
        kind: "onnx" or "torch-export".

    Raises:
        UserError: the extra is missing, the model cannot be exported, the file cannot be written or
            gives other numbers than the model.
    """
    if kind not in FILES:
        raise UserError(f"{kind}: must be one of {', '.join(FILES)}")
    out = Path(FILES[kind]) if out is None else out
    whole, images = FromPixels(model).eval(), [_examples(inputs, n) for n in (2, 3)]
    write, run = (_onnx, _run_onnx) if kind == "onnx" else (_program, _run_program)
    with tempfile.TemporaryDirectory(prefix="robustmd-") as folder:
        made = Path(folder) / FILES[kind]
        try:
            write(whole, images[0], made)
        except ImportError as error:
            raise UserError(
                f"{error.name} is not installed; {install(required('export'))}"
            ) from None
        except Exception as error:  # the exporter's own, of many kinds
            words = f"the model cannot be exported as {kind}: {first_line(error)}"
            raise UserError(words) from None
        for one in images:
            with torch.inference_mode():
                wanted = whole(one).numpy()
            apart = np.abs(run(made, one) - wanted) / np.maximum(1, np.abs(wanted))
            if not apart.max() <= TOLERANCE:
                raise UserError(
                    f"{out}: not written: what was exported gives other logits (by "
                    f"{apart.max():.1e}; allowed are {TOLERANCE:g})"
                )
        content = made.read_bytes()
    try:
        write_atomically(out, lambda stream: stream.write(content))
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror})") from None
    return out


def _examples(inputs: Inputs, count: int) -> torch.Tensor:
    random, (height, *others) = torch.Generator().manual_seed(count), inputs.size
    if inputs.are_tokens:  # 0 and 1: how many there are, only the model knows
        return torch.randint(0, 2, (count, *others), generator=random)
    if height == 1:
        return torch.randn(count, *others, generator=random)
    shape = (count, height, *others, 3)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=random)


def _program(model: nn.Module, images: torch.Tensor, path: Path) -> None:
    batch = torch.export.Dim("n", min=1)
    program = torch.export.export(model, (images,), dynamic_shapes=({0: batch},))
    torch.export.save(program, path)


def _run_program(path: Path, images: torch.Tensor) -> np.ndarray:
    with torch.inference_mode():
        found: torch.Tensor = torch.export.load(path).module()(images)
    return found.numpy()


def _onnx(model: nn.Module, images: torch.Tensor, path: Path) -> None:
    import onnxruntime  # type: ignore[import-untyped]  # noqa: F401, PLC0415 - an extra
    import onnxscript  # noqa: F401, PLC0415

    torch.onnx.export(
        model,
        (images,),
        path,
        input_names=["images"],
        output_names=["logits"],
        dynamic_shapes=({0: torch.export.Dim("n", min=1)},),
        opset_version=OPSET,
        dynamo=True,
        external_data=False,
        verbose=False,
    )


def _run_onnx(path: Path, images: torch.Tensor) -> np.ndarray:
    import onnxruntime  # noqa: PLC0415

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found: Any = session.run(["logits"], {"images": images.numpy()})[0]
    return np.asarray(found)
