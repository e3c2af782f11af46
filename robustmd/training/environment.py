"""What a run computes on: device, precision, memory; what environment.json says of the machine."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

import robustmd
from robustmd.config.settings import Runtime
from robustmd.errors import UserError

PACKAGES = ("torch", "torchvision", "numpy", "hydra-core", "omegaconf", "scipy", "pandas")
TOO_LITTLE = (  # NumPy's and PyTorch's words; the last three for sizes beyond 64 bits
    *("can't allocate memory", "not enough memory", "out of memory", "bad_alloc"),
    *("array is too big", "iterator is too large", "Overflow when unpacking"),
)


def choose_device(name: str) -> torch.device:
    """`runtime.device` as a device that is there. Raises UserError that says which are."""
    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    there = ["cpu", *(kind for kind, is_there in found.items() if is_there)]
    if name == "auto":
        return torch.device(there[1] if len(there) > 1 else "cpu")
    kind, _, index = name.partition(":")
    if kind not in there or (index and int(index) >= torch.cuda.device_count()):
        raise UserError(
            f"runtime.device={name}: no such device on this machine; it has: {', '.join(there)}"
        )
    return torch.device(name)


def set_up(runtime: Runtime, device: torch.device) -> str:
    """Let torch compute as `runtime` says, on the device. Returns the precision: fp32, tf32 or
    bf16; auto is bf16 on GPUs that have it, else fp32. With tf32 CUDA rounds the factors of float32
    products to 10 bits. Raises UserError: the device has no such arithmetic."""
    if runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    on_cuda, precision = device.type == "cuda", runtime.precision
    has_bf16 = not on_cuda or torch.cuda.is_bf16_supported(including_emulation=False)
    if precision == "tf32" and not on_cuda:
        raise UserError(f"runtime.precision=tf32: only CUDA has it, not {device}; fp32, bf16, auto")
    if precision == "bf16" and not has_bf16:
        raise UserError(f"runtime.precision=bf16: {device} has none; allowed here: fp32, tf32")
    if precision == "auto":
        precision = "bf16" if on_cuda and has_bf16 else "fp32"
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    if runtime.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if torch.are_deterministic_algorithms_enabled() != runtime.deterministic:
        torch.use_deterministic_algorithms(runtime.deterministic)  # a second: loads a compiler
    return precision


@contextmanager
def memory_for(what: str) -> Iterator[None]:
    """Within it an allocation that fails, on the CPU or a device, is a UserError: too little memory
    for `what`, which says what to do about it."""
    try:
        yield
    except (MemoryError, RuntimeError, TypeError, ValueError) as error:
        is_memory = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if is_memory or any(words in str(error) for words in TOO_LITTLE):
            raise UserError(f"too little memory for {what}") from None
        raise


def describe(device: torch.device) -> dict[str, Any]:
    """What of the machine and its software can change a run's bytes."""
    on_cuda = device.type == "cuda"
    return {
        "robustmd": robustmd.__version__,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "cpu": f"{_cpu_name()} ({os.cpu_count()} cores)",
        "device": torch.cuda.get_device_name(device) if on_cuda else str(device),
        "threads": torch.get_num_threads(),
        **_commit(),
    }


def version(package: str) -> str | None:
    """Of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:  # no Linux
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


@cache
def _commit() -> dict[str, Any]:
    """The commit of the checkout that the package runs from; null where it is installed."""
    root = Path(robustmd.__file__).resolve().parent.parent
    commit = changes = None
    if (root / ".git").exists():
        git = ["git", "-C", str(root)]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            asked = partial(subprocess.check_output, text=True, timeout=10)
            commit = asked([*git, "rev-parse", "HEAD"]).strip()
            changes = bool(asked([*git, "status", "--porcelain"]).strip())
    return {"git_commit": commit, "git_dirty": changes}
