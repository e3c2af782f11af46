"""One run by several processes, as torchrun starts them: each computes a part of every batch.

DDP averages the gradients; losses, counts and what the first process decides go over the group, so
that all have the same model and the same weights p.
"""

from __future__ import annotations

import gc
import hashlib
import io
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from robustmd.errors import UserError, printable
from robustmd.training.progress import Interrupted, StopRequest

LONGEST = timedelta(hours=1)  # that one waits for another, which measures or writes
SKEW = 15.0  # seconds: torchrun has ended the others by then where the first has failed


class Lost(UserError):
    """Another process of the run has ended, so that this one cannot go on."""


class Processes:
    """The processes of a run: this one's number, from 0, and how many there are. Alone, none of its
    methods does anything."""

    def __init__(self, index: int = 0, size: int = 1) -> None:
        self.index, self.size = index, size

    @classmethod
    def here(cls) -> Processes:
        """Those that this process is among."""
        if not (distributed.is_available() and distributed.is_initialized()):
            return cls()
        return cls(distributed.get_rank(), distributed.get_world_size())

    @property
    def is_first(self) -> bool:
        """The one that writes the run and speaks."""
        return self.index == 0

    def sum(
        self, values: Tensor, between: Callable[[], None] = lambda: None, how: Any = None
    ) -> Tensor:
        """Over the processes, or the maximum; every one gets the same bits.

        Raises `Lost` where another one has ended, or what `between` raises: a signal that ended the
        other one ends this one as well as it.
        """
        if self.size == 1:
            return values
        total = values.clone()
        try:
            distributed.all_reduce(total, how or distributed.ReduceOp.SUM)
        except RuntimeError as error:
            between()
            words = str(error).split("] ", 1)[-1].partition(". ")[0]  # after gloo's file and line
            raise Lost(
                f"another process of this run has ended ({words}); the same command goes on"
            ) from error
        return total

    def first_says(self, value: Any) -> Any:
        """The first one's value: tensors, numbers and text, also in mappings and lists."""
        if self.size == 1:
            return value
        buffer = io.BytesIO()
        if self.is_first:
            torch.save(value, buffer)
        content = torch.zeros(int(self.sum(torch.tensor(buffer.tell()))), dtype=torch.uint8)
        if self.is_first:
            content = torch.frombuffer(buffer.getbuffer(), dtype=torch.uint8)
        told = io.BytesIO(self.sum(content).numpy().tobytes())
        return torch.load(told, "cpu", weights_only=True)

    def check_stop(self, stop: StopRequest) -> None:
        """Raise `Interrupted` in all where a signal has come to one."""
        if self.size == 1:
            return stop.check()
        code = int(self.sum(torch.tensor(stop.code), stop.check, distributed.ReduceOp.MAX))
        if code:
            stop.check()
            raise Interrupted(signal.Signals(code - 128).name)

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model whose gradients are means over the processes. Raises UserError: batch norm
        would train with each process's own statistics."""
        if self.size == 1:
            return model
        is_on_cuda = next(model.parameters()).is_cuda
        if any(isinstance(one, _BatchNorm) and one.training for one in model.modules()):
            if not is_on_cuda:
                raise UserError(
                    f"torchrun, {self.size} processes: batch norm needs GPUs, where torch shares "
                    "its statistics; backbone.freeze_bn=true lets them be"
                )
            nn.SyncBatchNorm.convert_sync_batchnorm(model)
        devices = [torch.cuda.current_device()] if is_on_cuda else None
        return DistributedDataParallel(model, device_ids=devices)

    def device(self, chosen: torch.device) -> torch.device:
        """This one's. Raises UserError where it has none."""
        if self.size == 1 or chosen.type == "cpu":
            return chosen
        own, there = int(os.environ.get("LOCAL_RANK", self.index)), torch.cuda.device_count()
        if chosen != torch.device("cuda") or own >= there:
            raise UserError(
                f"runtime.device={chosen}: of {self.size} processes each needs a GPU of its own "
                f"(there are {there}); give cuda to as many, or cpu"
            )
        torch.cuda.set_device(own)
        return torch.device("cuda", own)

    def check_same(self, what: str) -> None:
        """Raises UserError where `what` is another text than the first process's: its settings,
        data and code."""
        digest = hashlib.sha256(what.encode()).hexdigest()
        if self.first_says(digest) != digest:
            raise UserError(
                f"torchrun, {self.size} processes: rank {self.index} has other settings, data or "
                "code than the first one; give all the same files"
            )


@contextmanager
def joined() -> Iterator[None]:
    """Within it this process is one of those that torchrun has started. The first alone prints."""
    # torch.optim imports it, and if only then, it keeps the group and its threads beyond their end:
    # one of them can then abort a process that exits.
    import torch._dynamo  # noqa: PLC0415

    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        distributed.init_process_group(backend, timeout=LONGEST)
    except (RuntimeError, ValueError) as error:
        raise UserError(f"torchrun: its processes do not meet: {error}") from None
    index = distributed.get_rank()
    if index:
        warnings.simplefilter("ignore")
    try:
        with redirect_stdout(io.StringIO()) if index else nullcontext():
            yield
        gc.collect()  # a model of DDP's in a cycle would keep the group's threads, as above
        distributed.destroy_process_group()
    except Lost as error:
        if not index:
            print(f"robustmd: {printable(error)}", file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None
    except Exception as error:
        if index:
            time.sleep(SKEW)  # the same mistake is said once
            if isinstance(error, UserError):
                raise UserError(f"rank {index}: {error}") from None
        raise
