"""What a run computes on: device, arithmetic, memory; and what it ran on, to get the same again."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import robustmd
from robustmd.errors import UserError

PACKAGES = ("torch", "torchvision", "numpy", "hydra-core", "omegaconf", "scipy", "pandas")
BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})  # CPUs where bfloat16 is faster, not slower
WORDS = ("can't allocate memory", "not enough memory", "out of memory", "bad_alloc")
BEYOND_64_BITS = ("array is too big", "Overflow when unpacking")  # NumPy's and PyTorch's words


def choose_device(name: str) -> torch.device:
    """`runtime.device` as a device that is there.

    Raises:
        UserError: it is not; says what is.
    """
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if there[kind]))
    kind, _, index = name.partition(":")
    available = [kind for kind, is_there in there.items() if is_there]
    if not there[kind] or (index and int(index) >= torch.cuda.device_count()):
        raise UserError(
            f"runtime.device={name}: no such device on this machine; it has: {', '.join(available)}"
        )
    return torch.device(name)


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


@contextmanager
def memory_for(what: str) -> Iterator[None]:
    """Within it an allocation that fails, on the CPU or a device, is the user's to mend.

    Raises:
        UserError: "too little memory for", and `what`, which says what to do about it.
    """
    try:
        yield
    except (MemoryError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
            words in str(error) for words in (*WORDS, *BEYOND_64_BITS)
        ):
            raise UserError(f"too little memory for {what}") from None
        raise


def describe(device: torch.device) -> dict[str, Any]:
    """environment.json, but for what the run itself adds."""
    on_cuda = device.type == "cuda"
    return {
        "robustmd": robustmd.__version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "device": torch.cuda.get_device_name(device) if on_cuda else str(device),
        "threads": torch.get_num_threads(),
        **_commit(),
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        name = platform.processor()
    return f"{name} ({os.cpu_count()} cores)"


def _commit() -> dict[str, Any]:
    """The commit of the checkout that the package runs from; empty where it is installed."""
    root = Path(robustmd.__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return {"git_commit": None, "git_dirty": None}
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return {"git_commit": commit, "git_dirty": bool(_git(root, "status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return {"git_commit": None, "git_dirty": None}


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
