"""All that the bench measures, in order, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from robustmd.bench.contenders import bare, ours
from robustmd.bench.memory import peak_bytes
from robustmd.bench.naive import naive, workers
from robustmd.bench.startup import first_measurement_seconds, help_seconds
from robustmd.bench.throughput import measuring, training_flop
from robustmd.bench.timing import Ratio, interleaved, paired_ratio
from robustmd.bench.updates import update_microseconds
from robustmd.bench.workload import Workload, grid_domains, random_domains, workloads
from robustmd.training.environment import describe, resolve_precision

Say = Callable[[str], None]
METHODS = ("even", "opt", "ot")
RATIOS = (("opt", "bare"), ("opt", "even"), ("ot", "even"), ("naive", "opt"))
GROWTH = (2, 10, 100)
GRIDS = ((5, 2), (40, 25))  # angles × noise levels: K = 10 and K = 1,000


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds of each comparison, iterations between two clock readings."""

    rounds: int
    burst: int
    images: int  # of a measurement


def effort_for(device: torch.device, *, quick: bool) -> Effort:
    """Enough rounds that a ratio's interval is a few per cent wide on an idle machine."""
    if device.type == "cuda":
        return Effort(15, 10, 60_000) if quick else Effort(40, 25, 60_000)
    return Effort(3, 1, 1_000) if quick else Effort(60, 1, 20_000)


def run_bench(device: torch.device, effort: Effort, say: Say) -> dict[str, Any]:
    """Everything, on this device: the content of the bench's JSON file. `say` tells of progress."""
    fastest = resolve_precision("auto", device)
    result: dict[str, Any] = {
        "environment": describe(device),
        "effort": dataclasses.asdict(effort),
        "loader_workers": workers(),
        "fastest_precision": fastest,
        "workloads": {},
    }
    for workload in workloads(device):
        say(f"{workload.name}, batch {workload.batch_size}: loops")
        result["workloads"][workload.name] = _loops(workload, device, effort, fastest)
    small = workloads(device)[0]
    say(f"{small.name}: growth with the number of domains")
    result["growth"] = _growth(small, device, effort)
    say(f"{small.name}: more domains than a batch has examples")
    result["many"] = _many(small, device, effort)
    say("adversary updates")
    result["update_microseconds"] = update_microseconds(device)
    say(f"{small.name}: measurement")
    found = measuring(small, device, "fp32", effort.images, max(3, effort.rounds // 10))
    result["measurement"] = dataclasses.asdict(found)
    say("seconds to the first measurement")
    cold, warm = first_measurement_seconds()
    result["seconds"] = {"help": help_seconds(), "first_cold": cold, "first_warm": warm}
    result["peak_bytes"] = peak_bytes(device)
    return result


def _loops(
    workload: Workload, device: torch.device, effort: Effort, fastest: str
) -> dict[str, Any]:
    domains = random_domains(2, workload.side)
    steps = {"bare": bare(workload, domains, device, "fp32")}
    steps |= {name: ours(workload, domains, device, name, "fp32") for name in METHODS}
    steps["naive"] = naive(workload, domains, device)
    pairs = list(RATIOS)
    if fastest != "fp32":
        steps[f"opt {fastest}"] = ours(workload, domains, device, "opt", fastest)
        pairs.append(("opt", f"opt {fastest}"))
    seconds = interleaved(steps, effort.rounds, device, burst=effort.burst)
    flop = training_flop(workload, device)
    return {
        "batch_size": workload.batch_size,
        "milliseconds": {name: 1e3 * float(np.median(s)) for name, s in seconds.items()},
        "images_per_second": workload.batch_size / float(np.median(seconds["opt"])),
        "flop_per_iteration": flop,
        "flop_per_second": flop / float(np.median(seconds["opt"])),
        "ratios": {f"{a}/{b}": _ratio(seconds[a], seconds[b]) for a, b in pairs},
    }


def _growth(workload: Workload, device: torch.device, effort: Effort) -> dict[str, Any]:
    steps = {
        str(K): ours(workload, random_domains(K, workload.side), device, "opt", "fp32")
        for K in GROWTH
    }
    seconds = interleaved(steps, effort.rounds, device, burst=effort.burst)
    return {
        "milliseconds": {K: 1e3 * float(np.median(s)) for K, s in seconds.items()},
        "ratios": {f"{K}/2": _ratio(seconds[str(K)], seconds["2"]) for K in GROWTH[1:]},
    }


def _many(workload: Workload, device: torch.device, effort: Effort) -> dict[str, Any]:
    """opt on rotations × noise: all of 10 domains in a batch against some of 1,000."""
    steps = {
        str(angles * sigmas): ours(
            workload, grid_domains(angles, sigmas, workload.side), device, "opt", "fp32"
        )
        for angles, sigmas in GRIDS
    }
    seconds = interleaved(steps, effort.rounds, device, burst=effort.burst)
    return {
        "milliseconds": {K: 1e3 * float(np.median(s)) for K, s in seconds.items()},
        "ratios": {"1000/10": _ratio(seconds["1000"], seconds["10"])},
    }


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> dict[str, float]:
    ratio: Ratio = paired_ratio(numerator, denominator)
    return dataclasses.asdict(ratio)
