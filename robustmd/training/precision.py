"""In which arithmetic the model computes; losses, weights and sums are always exact beside it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import torch
from torch import nn

from robustmd.errors import UserError

BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})  # CPUs where bfloat16 is faster, not slower


def resolve_precision(name: str, device: torch.device) -> str:
    """`runtime.precision` as one of fp32, tf32, bf16: what `auto` takes on this device.

    auto is bf16 on GPUs that have it and on CPUs with AVX512-BF16 or AMX, else fp32.

    Raises:
        UserError: the device has no such arithmetic.
    """
    if name == "tf32" and device.type != "cuda":
        raise UserError(f"runtime.precision=tf32: only CUDA has it, not {device}; fp32, bf16, auto")
    if name == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise UserError(f"runtime.precision=bf16: {device} has none; allowed here: fp32, tf32")
    if name != "auto":
        return name
    return "bf16" if _has_fast_bf16(device) else "fp32"


def _has_fast_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "")
    return not BF16_FLAGS.isdisjoint(flags.split())


def allow_tf32(allowed: bool) -> None:
    """Whether CUDA may round the factors of float32 products to 10 bits (precision=tf32)."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


class InPrecision(nn.Module):
    """A model that computes in a precision and answers in float32.

    Args:
        model: its weights stay float32; with bf16 autocast rounds them for each product.
        precision: fp32, tf32 (see `allow_tf32`) or bf16.
    """

    def __init__(self, model: nn.Module, precision: str) -> None:
        super().__init__()
        self.model = model
        self.precision = precision

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits, float32 [n, C], of images float32 [n, 3, H, W]."""
        context: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if self.precision == "bf16":
            context = torch.autocast(images.device.type, torch.bfloat16)
        with context:
            logits: torch.Tensor = self.model(images)
        return logits.float()
