"""One run by several processes, as torchrun starts them: each computes a part of every batch.

Sums go over the processes before anything is divided, so that losses, gradients and batch-norm
statistics are those of the whole batch, and all have the same model and the same weights p.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from datetime import timedelta
from types import MethodType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from robustmd.errors import UserError, printable
from robustmd.registry import AUGMENTATIONS
from robustmd.training.batches import torch_seed
from robustmd.training.console import Interrupted, StopRequest

if TYPE_CHECKING:
    from robustmd.training.plan import Plan
    from robustmd.training.state import RunState

LONGEST = timedelta(hours=1)  # that one waits for another, which measures or writes
SKEW = 15.0  # seconds: torchrun has ended the others by then where the first has failed


class Lost(UserError):
    """Another process of the run has ended, so that this one cannot go on."""


class Ranks:
    """The processes of a run: this one's number, from 0, and how many there are. Alone, none of its
    methods does anything."""

    def __init__(self, index: int = 0, size: int = 1) -> None:
        self.index, self.size = index, size

    @property
    def is_first(self) -> bool:
        """The one that writes the run and speaks."""
        return self.index == 0

    def sum(
        self, values: Tensor, between: Callable[[], None] = lambda: None, how: Any = None
    ) -> Tensor:
        """Over the processes, or the maximum; every one gets the same bits.

        Raises `Lost` where another one has ended, or what `between` raises: for a sum between two
        iterations, where a signal that ended the other one ends this one as well as it.
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

    def share(self, state: RunState, seed: int) -> None:
        """Give all the first one's state; what torch draws from then on (dropout) is each one's."""
        if self.size == 1:
            return
        told = self.first_says(state.state_dict() if self.is_first else None)
        if not self.is_first:
            state.load_state_dict(told)
        self._seed = torch_seed(seed, f"rank {self.index}")

    def begin(self, iteration: int, stop: StopRequest) -> None:
        """Before an iteration: raise `Interrupted` in all where a signal has come to one."""
        if self.size == 1:
            return stop.check()
        code = int(self.sum(torch.tensor(stop.code), stop.check, distributed.ReduceOp.MAX))
        if code:
            stop.check()
            raise Interrupted(signal.Signals(code - 128).name)
        torch.manual_seed(self._seed + iteration)  # so that a run that goes on draws the same

    def sum_gradients(self, model: nn.Module) -> None:
        """In place."""
        if self.size == 1:
            return
        there = [p.grad for p in model.parameters() if p.grad is not None]
        total = self.sum(torch.cat([gradient.flatten() for gradient in there]))
        for gradient, part in zip(there, total.split([g.numel() for g in there]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def connect_batch_norm(self, model: nn.Module) -> None:
        """Let it train with the statistics of the whole batch. Raises UserError where it cannot."""
        if self.size == 1:
            return
        found = [one for one in model.modules() if isinstance(one, _BatchNorm) and one.training]
        for module in found:
            if type(module).forward is not _BatchNorm.forward:
                raise UserError(
                    f"torchrun, {self.size} processes: the backbone's {type(module).__name__} is "
                    "no plain batch norm, so that each would train with statistics of its own; "
                    "backbone.freeze_bn=true lets them be"
                )
            module.forward = MethodType(_batch_norm, module)  # type: ignore[method-assign]
        if found and next(model.parameters()).is_cuda:  # torch's own is faster, and there alone
            nn.SyncBatchNorm.convert_sync_batchnorm(model)

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

    def check(self, plan: Plan) -> None:
        """Raises UserError where several processes cannot train by that plan."""
        if self.size == 1:
            return
        training, drawn = plan.config.training, plan.domains_per_batch
        augmentation = AUGMENTATIONS.get(plan.config.data.augment)
        examples = training.batch_size if plan.shares else training.batch_size // drawn * drawn
        refused = ""
        if plan.config.runtime.compile:
            refused = "runtime.compile=true: leave it out"
        elif augmentation is not None and augmentation.numbers is None:
            refused = (
                f"data.augment={augmentation.name}: draws for a whole batch; give it numbers=N"
            )
        elif examples < self.size:
            refused = f"training.batch_size={training.batch_size}: must have an example for each"
        elif self.first_says(plan.checkpoint_name) != plan.checkpoint_name:
            refused = "other settings or data than the first one's"
        if refused:
            raise UserError(f"torchrun, {self.size} processes: {refused}")


_here = Ranks()


def here() -> Ranks:
    """The processes that this one is among."""
    return _here


@contextmanager
def joined() -> Iterator[None]:
    """Within it `here` are the processes that torchrun has started. The first alone prints."""
    global _here  # noqa: PLW0603 - as torch's process group is
    # torch.optim imports it, and if only then, it keeps the group and its threads beyond their end:
    # one of them can then abort a process that exits.
    import torch._dynamo  # noqa: PLC0415

    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        distributed.init_process_group(backend, timeout=LONGEST)
    except (RuntimeError, ValueError) as error:
        raise UserError(f"torchrun: its processes do not meet: {error}") from None
    _here = Ranks(distributed.get_rank(), distributed.get_world_size())
    index = _here.index
    if index:
        warnings.simplefilter("ignore")
    try:
        with redirect_stdout(io.StringIO()) if index else nullcontext():
            yield
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
    finally:
        _here = Ranks()


class _Sum(torch.autograd.Function):
    """Over the processes; of the gradient as well, since the losses of all depend on it."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return here().sum(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return here().sum(gradient)


def _batch_norm(self: Any, inputs: Tensor) -> Tensor:
    """`forward` of a batch norm that trains with the statistics of all processes' examples."""
    if not self.training:
        return type(self).forward(self, inputs)
    last = inputs.float().movedim(1, -1)
    x = last.flatten(0, -2)  # [n, C]
    sums = _Sum.apply(torch.cat([x.sum(0), x.new_tensor([len(x)])]))
    mean, count = sums[:-1] / sums[-1], sums[-1]
    variance = _Sum.apply((x - mean).square().sum(0)) / count
    if self.track_running_stats:
        with torch.no_grad():
            self.num_batches_tracked.add_(1)
            share = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
            self.running_mean.lerp_(mean, share)
            self.running_var.lerp_(variance * count / (count - 1), share)
    x = (x - mean) * (variance + self.eps).rsqrt()
    if self.weight is not None:
        x = x * self.weight
    if self.bias is not None:
        x = x + self.bias
    return x.view_as(last).movedim(-1, 1).to(inputs.dtype)
