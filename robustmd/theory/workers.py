"""The experiments side by side: one process a core, each with one thread."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

from robustmd.theory.experiment import Experiment
from robustmd.theory.experiments import experiments
from robustmd.theory.tally import Outcome

Outcomes = list[list[Outcome]]


def run_side_by_side(
    horizons: Sequence[int], seeds: Sequence[int], workers: int
) -> Iterator[tuple[Experiment, Outcomes]]:
    """Every experiment with its outcomes [horizon][seed], in order; workers = 1: in this process.

    An experiment cannot travel between processes, for it holds functions. Each process makes all
    of them anew, alike, and is told which to run.
    """
    made = experiments()
    if workers == 1:
        for experiment in made:
            yield experiment, experiment.runs.run(horizons, seeds)
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        orders = [pool.submit(_run, i, list(horizons), list(seeds)) for i in range(len(made))]
        for experiment, order in zip(made, orders, strict=True):
            yield experiment, order.result()
    finally:
        pool.shutdown(cancel_futures=True)


@cache
def _made() -> list[Experiment]:
    return experiments()


def _run(index: int, horizons: list[int], seeds: list[int]) -> Outcomes:
    return _made()[index].runs.run(horizons, seeds)
