"""Jobs side by side: one process a core, each with one thread."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")


def side_by_side(
    job: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[Result]:
    """job(*arguments[0]), job(*arguments[1]), … in order; workers = 1: in this process."""
    if workers == 1:
        for given in arguments:
            yield job(*given)
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        for order in [pool.submit(job, *given) for given in arguments]:
            yield order.result()
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread within the block; as before after it.

    The studies' matrices are so small that threads would only wait for each other.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
