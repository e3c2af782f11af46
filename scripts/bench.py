#!/usr/bin/env python3
"""Time an iteration of several methods beside even weights and beside a bare PyTorch loop.

The contenders take turns, so that what slows the machine cancels in their ratios. A ratio is the
median over rounds, with an interval that holds the median with 95 %.

    python scripts/bench.py --out bench.json
    python scripts/bench.py --beside ../old-checkout   # whole runs of two versions of the code
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy import stats
from torch.nn import functional

from robustmd.config.check import make_config
from robustmd.domains import DomainSet
from robustmd.errors import UserError
from robustmd.registry import FROM_PYTHON
from robustmd.training.environment import choose_device, describe
from robustmd.training.learner import computed
from robustmd.training.plan import make_plan
from robustmd.training.progress import StopRequest
from robustmd.training.run import Run
from robustmd.training.steps import WARM_UP, ready_step, side_stream

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = 1_000  # of each domain; their content does not matter
WORKLOADS = {  # name -> image side, batch size on a CPU, settings
    "alexnet, 32 px": (32, 200, ["backbone=alexnet"]),
    "resnet18, 64 px": (64, 40, ["backbone=resnet18", "backbone.weights=none"]),
}
CUDA_BATCH = 200
RATIOS = [("opt", "bare"), ("opt", "even"), ("ot", "even")]
# --beside: backbone -> iterations on a CPU, batch size there
RUNS = {"convnet": (120, 100), "alexnet": (40, 40)}
CUDA_ITERATIONS = 4_000
QUANTITIES = ("milliseconds an iteration", "seconds to the first measurement", "peak MiB")

Step = Callable[[], object]


def random_domains(side: int) -> DomainSet:
    """Two domains of random pixels, and labels of 10 classes."""
    random = np.random.default_rng(0)

    def split(size: int) -> tuple[np.ndarray, np.ndarray]:
        return random.integers(0, 256, (size, side, side, 3), dtype=np.uint8), np.arange(size) % 10

    return DomainSet.from_tensors({name: (*split(EXAMPLES), *split(10)) for name in ("a", "b")})


def new_run(domains: DomainSet, *settings: str) -> Run:
    """A run of `robustmd train` before its first iteration."""
    given = [f"data={FROM_PYTHON}", "training.iterations=1000000", *settings]
    config = make_config(given)
    config.data.given, config.data.fingerprint = domains, domains.fingerprint
    run = Run(make_plan(config, settings, lambda _: None), StopRequest(), Console(quiet=True))
    run.plan.directory.path.mkdir(parents=True)
    run.begin(settings)
    return run


def train_step(run: Run) -> Step:
    """An iteration as `robustmd train` does it, its log included; on CUDA captured as a graph."""
    carry_out = ready_step(run)

    def step() -> None:
        run.iterate(carry_out)
        if run.iteration - run.logged == len(run.log):
            run.read_log()

    return step


def bare_step(run: Run) -> Step:
    """The limit: forward, backward and SGD on one batch that lies on the device; on CUDA a graph,
    because there launches cost more than kernels."""
    run.batches.go_to(0)
    batch, learner = run.batches.gather(), run.learner

    def step() -> None:
        loss = functional.cross_entropy(
            computed(learner.model, batch.images, run.precision), batch.labels
        )
        learner.optimizer.zero_grad()
        loss.backward()
        learner.optimizer.step()

    if run.plan.device.type != "cuda":
        return step
    with side_stream(run.plan.device):
        for _ in range(WARM_UP):
            step()
    graph = torch.cuda.CUDAGraph()
    learner.optimizer.zero_grad()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def time_alternated(
    steps: Mapping[str, Step], rounds: int, burst: int, device: torch.device
) -> dict[str, list[float]]:
    """Milliseconds of an iteration: name -> one number a round. In every round each contender runs
    `burst` iterations; who begins changes from round to round."""
    for step in steps.values():
        for _ in range(3):
            step()
    names = list(steps)
    milliseconds: dict[str, list[float]] = {name: [] for name in names}
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            wait()
            begun = time.perf_counter()
            for _ in range(burst):
                steps[name]()
            wait()
            milliseconds[name].append(1e3 * (time.perf_counter() - begun) / burst)
    return milliseconds


def paired_ratio(numerator: Sequence[float], denominator: Sequence[float]) -> dict[str, float]:
    """The median of numerator[i]/denominator[i] over n rounds, between the ranks that hold the
    median with 95 % for any distribution (binomial); for n < 6 the smallest and the largest."""
    ratios = np.sort(np.divide(numerator, denominator))
    n = len(ratios)
    rank = max(0, int(stats.binom.ppf(0.025, n, 0.5)) - 1)
    low, high = float(ratios[rank]), float(ratios[n - 1 - rank])
    return {"median": float(np.median(ratios)), "low": low, "high": high, "rounds": n}


def compare(values: Mapping[str, Sequence[float]], pairs: Sequence[tuple[str, str]]) -> Any:
    """Medians of all, and the ratios of the pairs."""
    return {
        "medians": {name: float(np.median(of)) for name, of in values.items()},
        "ratios": {f"{a} / {b}": paired_ratio(values[a], values[b]) for a, b in pairs},
    }


def compare_iterations(name: str, device: torch.device, rounds: int, burst: int) -> Any:
    """The contenders of one workload."""
    side, size, settings = WORKLOADS[name]
    domains = random_domains(side)
    size = CUDA_BATCH if device.type == "cuda" else size
    with tempfile.TemporaryDirectory() as folder:
        shared = [f"training.batch_size={size}", f"runtime.device={device}", *settings]
        shared.append(f"paths.outputs={folder}")
        steps = {"bare": bare_step(new_run(domains, *shared, "seed=1"))}
        for method in ("even", "opt", "ot"):
            steps[method] = train_step(new_run(domains, *shared, f"method={method}"))
        return compare(time_alternated(steps, rounds, burst, device), RATIOS)


def copy_package(checkout: Path, place: Path) -> Path:
    """The checkout's package with conf/ in it, as an installed package has it."""
    shutil.copytree(checkout / "robustmd", place / "robustmd")
    shutil.copytree(checkout / "conf", place / "robustmd" / "conf")
    if (plugins := checkout / "robustmd" / "sweeping" / "plugins").is_dir():
        shutil.copytree(plugins, place / "hydra_plugins" / "robustmd")
    return place


def measure_run(code: Path, device: torch.device, backbone: str, quick: bool) -> list[float]:
    """QUANTITIES of one `robustmd train` by the package in `code`, in a process of its own."""
    count, size = RUNS[backbone]
    if device.type == "cuda":
        count, size = CUDA_ITERATIONS, CUDA_BATCH
    half = count // (20 if quick else 2)
    outputs = code / "outputs"
    shutil.rmtree(outputs, ignore_errors=True)
    command = [sys.executable, "-m", "robustmd", "train", "data=digits_mini", "method=opt"]
    command += [f"backbone={backbone}", f"training.batch_size={size}", f"runtime.device={device}"]
    command += [f"training.iterations={2 * half}", f"evaluation.every={half}"]
    command += ["evaluation.examples=20", f"paths.outputs={outputs}", f"paths.cache={code}/cache"]
    environment = os.environ | {"PYTHONPATH": str(code), "PYTHONSAFEPATH": "1", "COLUMNS": "200"}
    begun, first, lines = time.perf_counter(), 0.0, []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            if "iteration 0/" in line:
                first = time.perf_counter() - begun
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    if status or not first:
        raise UserError(f"{' '.join(command)} failed: {''.join(lines)[-500:]}")
    (metrics,) = outputs.rglob("metrics.csv")
    with metrics.open(newline="") as stream:
        seconds = {int(row["iteration"]): float(row["seconds"]) for row in csv.DictReader(stream)}
    milliseconds = 1e3 * (seconds[2 * half] - seconds[half]) / half  # the first half warms up
    return [milliseconds, first, used.ru_maxrss / 2**10]


def compare_versions(other: Path, device: torch.device, rounds: int, quick: bool) -> Any:
    """Whole runs of this checkout and of the other, by turns: {backbone: quantity: …}."""
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        code = {
            "this": copy_package(ROOT, Path(folder, "this")),
            "other": copy_package(other, Path(folder, "other")),
        }
        for place in code.values():  # draws the digits, compiles Python's files
            measure_run(place, device, "convnet", quick=True)
        for backbone in RUNS:
            runs: dict[str, list[list[float]]] = {name: [] for name in code}
            for turn in range(rounds):
                for name in sorted(code, reverse=turn % 2 == 1):
                    runs[name].append(measure_run(code[name], device, backbone, quick))
            for i, quantity in enumerate(QUANTITIES):
                values = {name: [run[i] for run in runs[name]] for name in code}
                result[f"{backbone}: {quantity}"] = compare(values, [("this", "other")])
    return result


def show(title: str, comparison: Mapping[str, Any], console: Console) -> None:
    table = Table("", "median", "95 % interval", "rounds", title=title, title_justify="left")
    for name, value in comparison["medians"].items():
        table.add_row(name, f"{value:.2f}")
    for name, ratio in comparison["ratios"].items():
        interval = f"[{ratio['low']:.3f}, {ratio['high']:.3f}]"
        table.add_row(name, f"{ratio['median']:.3f}", interval, str(ratio["rounds"]))
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few rounds: does it run at all?")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the numbers as JSON")
    parser.add_argument("--beside", type=Path, metavar="DIR", help="another checkout: compare both")
    args = parser.parse_args(arguments)
    if args.out is not None and not args.out.absolute().parent.is_dir():
        parser.error(f"--out {args.out}: there is no folder {args.out.parent}; make it first")
    if args.beside is not None and not (args.beside / "robustmd" / "cli.py").is_file():
        parser.error(f"--beside {args.beside}: must be a checkout, with robustmd/cli.py in it")
    try:
        device = choose_device(args.device)
        if args.beside is not None:
            rounds = 2 if args.quick else 12
            comparisons = compare_versions(args.beside, device, rounds, args.quick)
        else:
            rounds, burst = (40, 25) if device.type == "cuda" else (60, 1)
            rounds = 3 if args.quick else rounds
            comparisons = {
                f"{name}: ms an iteration": compare_iterations(name, device, rounds, burst)
                for name in WORKLOADS
            }
    except UserError as error:
        parser.error(str(error))
    for title, comparison in comparisons.items():
        show(title, comparison, Console())
    if args.out is not None:
        result = {"environment": describe(device), "comparisons": comparisons}
        args.out.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
