"""All that the bench measures, in order, as plain data, and how a terminal shows it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

from robustmd.adversary import RegretMeter
from robustmd.bench.contenders import (
    Workload,
    bare,
    grid_domains,
    loader_workers,
    naive,
    ours,
    random_domains,
    workloads,
)
from robustmd.bench.timing import Step, interleaved, paired_ratio, startup_seconds
from robustmd.methods import build_adversary
from robustmd.registry import METHODS, MethodFacts
from robustmd.training.learner import build_learner
from robustmd.training.measurement import images_at_once, measure
from robustmd.training.pool import chunks, resident_splits
from robustmd.training.records import describe, resolve_precision

LOOPS = ("even", "opt", "ot")
RATIOS = (("opt", "bare"), ("opt", "even"), ("ot", "even"), ("naive", "opt"))
GROWTH = (2, 10, 100)
GRIDS = ((5, 2), (40, 25))  # angles × noise levels: K = 10 and K = 1,000
UPDATES = ("opt", "ot", "kl", "minimax", "best_response", "oracle")
SIZES = (2, 10, 1000)  # K of the updates
GROWTHS = (  # key, the K compared with, title
    ("growth", "2", "opt at one batch size, by the number of domains K"),
    ("many", "10", "opt on rotations × noise at one batch size; of 1,000 domains a batch has 200"),
)


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


def run_bench(device: torch.device, effort: Effort, say: Callable[[str], None]) -> dict[str, Any]:
    """Everything, on this device: the content of the bench's JSON file. `say` tells of progress."""
    fastest = resolve_precision("auto", device)
    result: dict[str, Any] = {
        "environment": describe(device),
        "effort": dataclasses.asdict(effort),
        "loader_workers": loader_workers(),
        "fastest_precision": fastest,
        "workloads": {},
    }
    for workload in workloads(device):
        say(f"{workload.name}, batch {workload.batch_size}: loops")
        result["workloads"][workload.name] = _loops(workload, device, effort, fastest)
    small = workloads(device)[0]
    domains = {
        "growth": [random_domains(K, small.side) for K in GROWTH],
        "many": [grid_domains(*grid, small.side) for grid in GRIDS],
    }
    for key, base, title in GROWTHS:
        say(f"{small.name}: {title}")
        steps = {str(len(of)): ours(small, of, device, "opt", "fp32") for of in domains[key]}
        pairs = [(K, base) for K in steps if base != K]
        result[key] = _compared(steps, pairs, device, effort)
    say("adversary updates")
    result["update_microseconds"] = update_microseconds(device)
    say(f"{small.name}: measurement")
    rounds = max(3, effort.rounds // 10)
    result["measurement"] = measuring(small, device, effort.images, rounds)
    say("seconds to the first measurement")
    result["seconds"] = startup_seconds()
    result["peak_bytes"] = _peak_bytes(device)
    return result


def _compared(
    steps: Mapping[str, Step],
    pairs: Sequence[tuple[str, str]],
    device: torch.device,
    effort: Effort,
) -> dict[str, Any]:
    """Median milliseconds of each, and the ratios of the pairs."""
    seconds = interleaved(steps, effort.rounds, device, burst=effort.burst)
    return {
        "milliseconds": {name: 1e3 * float(np.median(s)) for name, s in seconds.items()},
        "ratios": {f"{a}/{b}": paired_ratio(seconds[a], seconds[b]) for a, b in pairs},
    }


def _loops(
    workload: Workload, device: torch.device, effort: Effort, fastest: str
) -> dict[str, Any]:
    domains = random_domains(2, workload.side)
    steps = {"bare": bare(workload, domains, device, "fp32")}
    steps |= {name: ours(workload, domains, device, name, "fp32") for name in LOOPS}
    steps["naive"] = naive(workload, domains, device)
    pairs = list(RATIOS)
    if fastest != "fp32":
        steps[f"opt {fastest}"] = ours(workload, domains, device, "opt", fastest)
        pairs.append(("opt", f"opt {fastest}"))
    found = _compared(steps, pairs, device, effort)
    seconds, flop = found["milliseconds"]["opt"] / 1e3, training_flop(workload, device)
    return {
        "batch_size": workload.batch_size,
        **found,
        "images_per_second": workload.batch_size / seconds,
        "flop_per_iteration": flop,
        "flop_per_second": flop / seconds,
    }


def training_flop(workload: Workload, device: torch.device) -> int:
    """Floating-point operations of one iteration's forward and backward pass, as torch counts."""
    domains = random_domains(2, workload.side, workload.batch_size)
    model = build_learner(workload.config("even"), domains, 2, device).model
    images = torch.zeros(workload.batch_size, 3, workload.side, workload.side, device=device)
    with FlopCounterMode(display=False) as counter:
        model(images).sum().backward()
    return int(counter.get_total_flops())


def update_microseconds(
    device: torch.device, rounds: int = 30, burst: int = 20
) -> dict[str, dict[int, float]]:
    """method -> K -> median microseconds of `update`, the regret meter's included."""

    def median(method: str, num_domains: int) -> float:
        adversary = build_adversary(METHODS[method](), MethodFacts(num_domains, 10**6)).to(device)
        meter = RegretMeter.of(adversary) if adversary.has_regret else None
        losses = torch.rand(num_domains, device=device) + 0.5

        def step() -> None:
            play = adversary.update(losses)
            if meter is not None:
                meter.update(play)

        seconds = interleaved({"update": step}, rounds, device, burst=burst)["update"]
        return 1e6 * float(np.median(seconds))

    return {method: {K: median(method, K) for K in SIZES} for method in UPDATES}


def measuring(workload: Workload, device: torch.device, images: int, rounds: int) -> dict[str, Any]:
    """A whole `measure` in images a second, and the ratio of its time to that of forward passes
    over chunks that already lie normalised on the device: so many `images` each time, in `rounds`
    of both kinds in turns."""
    domains = random_domains(1, workload.side, images)
    learner = build_learner(workload.config("even"), domains, 1, device)
    splits = resident_splits(domains, device)["train"]
    (split,) = splits.values()
    there = [pixels for pixels, _ in chunks(split, images_at_once(split))]

    def forward_passes() -> None:
        learner.model.eval()
        with torch.inference_mode():
            for pixels in there:
                learner.logits(pixels)

    steps: dict[str, Step] = {
        "ours": lambda: measure(learner.logits, splits),
        "bare": forward_passes,
    }
    seconds = interleaved(steps, rounds, device, warm_up=1)
    return {
        "images_per_second": len(split) / float(np.median(seconds["ours"])),
        "ratio": paired_ratio(seconds["ours"], seconds["bare"]),
    }


def _peak_bytes(device: torch.device) -> int:
    """On CUDA what torch has allocated there at most, elsewhere the process's resident set."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    import resource  # noqa: PLC0415 - not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # bytes there, KiB elsewhere


def show(result: Mapping[str, Any], console: Console) -> None:
    """Prints what `run_bench` returned."""
    environment = result["environment"]
    console.print(
        f"{environment['device']} · {environment['cpu']} · {environment['threads']} threads · "
        f"torch {environment['packages']['torch']} · commit {str(environment['git_commit'])[:8]}",
    )
    for name, workload in result["workloads"].items():
        _show_loops(name, workload, console)
    for key, base, title in GROWTHS:
        table = Table("domains", "ms an iteration", f"ratio to K = {base}", "95 % interval", "n")
        table.title = title
        for K, milliseconds in result[key]["milliseconds"].items():
            ratio = result[key]["ratios"].get(f"{K}/{base}")
            table.add_row(K, f"{milliseconds:.2f}", *(_ratio_cells(ratio) if ratio else [""] * 3))
        console.print(table)
    updates = result["update_microseconds"]
    sizes = list(next(iter(updates.values())))
    table = Table("update, µs", *(f"K = {K}" for K in sizes))
    for method, by_size in updates.items():
        table.add_row(method, *(f"{by_size[K]:,.0f}" for K in sizes))
    console.print(table)
    measured, seconds = result["measurement"], result["seconds"]
    median, interval, _ = _ratio_cells(measured["ratio"])
    console.print(
        f"measurement: {measured['images_per_second']:,.0f} images/s, {median} {interval} of the "
        "bare forward passes' time\n"
        f"robustmd --help: {seconds['help']:.2f} s; train data=digits_mini to its first "
        f"measurement: {seconds['first_cold']:.1f} s cold, {seconds['first_warm']:.1f} s warm\n"
        f"peak memory: {result['peak_bytes'] / 2**20:,.0f} MiB"
    )


def _show_loops(name: str, workload: Mapping[str, Any], console: Console) -> None:
    times = Table("loop", "ms an iteration", title=f"{name}, batch {workload['batch_size']}, fp32")
    for loop, milliseconds in workload["milliseconds"].items():
        times.add_row(loop, f"{milliseconds:.2f}")
    ratios = Table("ratio", "median", "95 % interval", "n")
    for pair, ratio in workload["ratios"].items():
        ratios.add_row(pair, *_ratio_cells(ratio))
    console.print(times)
    console.print(ratios)
    console.print(
        f"training: {workload['images_per_second']:,.0f} images/s, "
        f"{workload['flop_per_second'] / 1e9:,.1f} GFLOP/s"
    )


def _ratio_cells(ratio: Mapping[str, float]) -> tuple[str, str, str]:
    interval = f"[{ratio['low']:.3f}, {ratio['high']:.3f}]"
    return f"{ratio['median']:.3f}", interval, f"{ratio['pairs']:.0f}"
