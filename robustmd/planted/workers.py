"""The cells side by side: one process a core, each with one thread."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

from robustmd.planted.domains import Setting
from robustmd.planted.methods import Method
from robustmd.planted.runs import Cell, run_cells

_LANES = 75  # cells a job: more would not fit the processor's cache, fewer wait for Python


@dataclass(frozen=True)
class _Job:
    """Cells that train together: one number of domains, some seeds."""

    settings: tuple[Setting, ...]
    seeds: tuple[int, ...]
    methods: tuple[Method, ...]
    iterations: int

    def run(self) -> list[Cell]:
        return run_cells(self.settings, self.seeds, self.methods, self.iterations)


def run_side_by_side(
    settings: Sequence[Setting],
    seeds: Sequence[int],
    methods: Sequence[Method],
    iterations: int,
    workers: int,
) -> Iterator[list[Cell]]:
    """Every setting with every seed, some cells at a time, in no order; workers = 1: in here."""
    jobs = [
        _Job(alike, some, tuple(methods), iterations)
        for alike in _alike(settings)
        for some in _portions(tuple(seeds), len(alike))
    ]
    if workers == 1:
        for job in jobs:
            yield job.run()
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        for order in as_completed([pool.submit(job.run) for job in jobs]):
            yield order.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _alike(settings: Sequence[Setting]) -> list[tuple[Setting, ...]]:
    """The settings by their number of domains, the largest group first."""
    counts = dict.fromkeys(setting.num_domains for setting in settings)
    groups = [tuple(s for s in settings if s.num_domains == K) for K in counts]
    return sorted(groups, key=len, reverse=True)


def _portions(seeds: tuple[int, ...], num_settings: int) -> list[tuple[int, ...]]:
    size = max(1, _LANES // num_settings)
    return [seeds[i : i + size] for i in range(0, len(seeds), size)]
