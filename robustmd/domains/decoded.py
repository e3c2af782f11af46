"""Many image files decoded on all cores, a few at a time, in order."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from robustmd.domains.decoding import Decoded, UnreadableError, decode, quietly

Result = Decoded | UnreadableError
AHEAD = 8  # files for each thread that are decoded before the first is taken
PROGRESS_SECONDS = 10.0


def decoded(paths: Sequence[Path], size: int, threads: int | None = None) -> Iterator[Result]:
    """Each file as size × size RGB, or why there is none; in order.

    threads: None: one a core. Threads and not processes, since Pillow lets go of the interpreter
    while it decodes and resizes. What is in memory does not grow with the number of files.
    """
    count = threads or cores()
    waiting: deque[Future[Result]] = deque()
    with quietly(), ThreadPoolExecutor(count, thread_name_prefix="decode") as pool:
        try:
            for path in paths:
                waiting.append(pool.submit(_result, path, size))
                if len(waiting) >= AHEAD * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # whoever takes the images may stop half-way
            pool.shutdown(cancel_futures=True)


def _result(path: Path, size: int) -> Result:
    try:
        return decode(path, size)
    except UnreadableError as error:
        return error


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


class Progress:
    """Says from time to time how many of `total` images have been read."""

    def __init__(self, total: int, say: Callable[[str], None]) -> None:
        self.total, self.say = total, say
        self.done = 0
        self._said = time.monotonic()

    def go_on_after(self, done: int) -> None:
        """`done` images need not be read again: they were before the preparation was cut off."""
        self.done += done
        if done:
            self.say(f"going on after {self.done:,} of {self.total:,} images, read before a cut")

    def one_more(self) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self._said >= PROGRESS_SECONDS and self.done < self.total:
            self._said = now
            self.say(f"{self.done:,} of {self.total:,} images read")
