"""Microseconds of one adversary update, with all that it tracks."""

from __future__ import annotations

import torch

from robustmd.adversary import RegretMeter
from robustmd.bench.timing import Step, interleaved
from robustmd.methods import build_adversary
from robustmd.registry import METHODS, MethodFacts

METHODS_TIMED = ("opt", "ot", "kl", "minimax", "best_response", "oracle")
DOMAINS = (2, 10, 1000)


def update_microseconds(
    device: torch.device, rounds: int = 30, burst: int = 20
) -> dict[str, dict[int, float]]:
    """method -> K -> median microseconds of `update`, the regret meter's included."""
    return {
        method: {
            K: 1e6 * float(_median(_update(method, K, device), rounds, burst, device))
            for K in DOMAINS
        }
        for method in METHODS_TIMED
    }


def _median(step: Step, rounds: int, burst: int, device: torch.device) -> float:
    seconds = interleaved({"update": step}, rounds, device, burst=burst)["update"]
    return float(sorted(seconds)[len(seconds) // 2])


def _update(method: str, num_domains: int, device: torch.device) -> Step:
    adversary = build_adversary(METHODS[method](), MethodFacts(num_domains, 10**6)).to(device)
    meter = RegretMeter.of(adversary) if adversary.has_regret else None
    losses = torch.rand(num_domains, device=device) + 0.5

    def step() -> None:
        play = adversary.update(losses)
        if meter is not None:
            meter.update(play)

    return step
