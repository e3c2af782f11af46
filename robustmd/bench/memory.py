"""The most memory that the process has taken."""

from __future__ import annotations

import sys

import torch


def peak_bytes(device: torch.device) -> int:
    """On CUDA what torch has allocated there at most, elsewhere the process's resident set."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    import resource  # noqa: PLC0415 - not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # bytes there, KiB elsewhere
