"""What a run ran on: versions, device, threads, commit; for getting the same numbers elsewhere."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

import robustmd
from robustmd.errors import UserError

PACKAGES = ("torch", "torchvision", "numpy", "hydra-core", "omegaconf", "scipy", "pandas")


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
