"""The bench's numbers for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

GROWTHS = (  # key, the K compared with, title
    ("growth", "2", "opt at one batch size, by the number of domains K"),
    ("many", "10", "opt on rotations × noise at one batch size; of 1,000 domains a batch has 200"),
)


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
