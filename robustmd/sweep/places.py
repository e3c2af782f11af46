"""How many runs of a sweep have room side by side, and on which device each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DEVICES = Path("/dev")
_GPU_FILES = ("nvidia*", "nvhost*", "nvmap", "dxg", "kfd")  # CUDA's, on Linux and WSL; ROCm's


def places_of(
    device: str, runs: int, n_jobs: int | None = None, per_device: int = 1
) -> list[dict[str, str]]:
    """The environment variables of every process: as many as runs go side by side, at least one.

    Args:
        device: `runtime.device`.
        runs: how many there are.
        n_jobs: how many the user wants; None: one a core, or `per_device` on each GPU.
        per_device: runs that share a GPU.
    """
    if runs == 1 or n_jobs == 1:
        return [{}]
    if sys.platform == "win32":  # where no pipe takes the place of a process's output
        line = "runs go one after another on Windows; side by side: hydra/launcher=joblib"
        print(line, file=sys.stderr)  # noqa: T201
        return [{}]
    gpus = [] if device == "cpu" else _gpus(device)
    if gpus:
        wanted = n_jobs or len(gpus) * per_device
        return [{"CUDA_VISIBLE_DEVICES": gpus[i % len(gpus)]} for i in range(min(wanted, runs))]
    wanted = min(n_jobs or cores(), runs)
    one_thread = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    return [one_thread] * wanted


def processes() -> int:
    """How many torchrun has started for one run; 1 without it."""
    return int(os.environ.get("WORLD_SIZE") or 1) if os.environ.get("RANK") else 1


def _gpus(device: str) -> list[str]:
    """The indices of the GPUs that runs may use; none where they run on the CPU."""
    if not any(path for name in _GPU_FILES for path in DEVICES.glob(name)):
        return []
    import torch  # noqa: PLC0415 - takes seconds, and only a sweep beside a GPU asks

    if not torch.cuda.is_available():
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(i) for i in range(torch.cuda.device_count())]
    _, colon, index = device.partition(":")
    return [names[int(index)]] if colon else names


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_gib() -> float | None:
    """Memory that is free or can be freed; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    kib = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if kib is None else int(kib) / 2**20
