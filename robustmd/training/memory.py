"""Too little memory as a line: PyTorch and NumPy have an error of their own for every allocator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from robustmd.errors import UserError

WORDS = ("can't allocate memory", "not enough memory", "out of memory", "bad_alloc")


@contextmanager
def memory_for(what: str) -> Iterator[None]:
    """Within it an allocation that fails, on the CPU or a device, is the user's to mend.

    Raises:
        UserError: "too little memory for", and `what`, which says what to do about it.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
            words in str(error) for words in WORDS
        ):
            raise UserError(f"too little memory for {what}") from None
        raise
