"""The model's steps: torch's optimizers by name, their groups of parameters, and the schedules."""

from __future__ import annotations

import inspect
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from robustmd.config.settings import OPTIMIZERS, Training
from robustmd.errors import UserError

Factor = Callable[[int], float]  # t -> η_t/η


def build_optimizer(
    model: nn.Module, training: Training, device: torch.device, head: str | None = None
) -> torch.optim.Optimizer:
    """torch's optimizer of that name, over the parameters that train, those of the layers `head` at
    `training.head_learning_rate`.

    It is fused where torch has it so. On CUDA it reads η and counts steps on the device, so that a
    graph can hold it. Raises UserError: no parameter trains.
    """
    there = {name.lower(): one for name, one in vars(torch.optim).items() if isinstance(one, type)}
    made, own = there[training.optimizer], OPTIMIZERS[training.optimizer]
    on_cuda, taken = device.type == "cuda", inspect.signature(made).parameters
    options: dict[str, Any] = {}
    if "fused" in taken and (on_cuda or training.optimizer != "sgd"):  # sgd's rounding stays
        options["fused"] = True
    if "capturable" in taken and on_cuda:
        options["capturable"] = True
    if own == "momentum":
        options["momentum"] = training.momentum
    elif own == "betas" and training.betas is not None:
        options["betas"] = tuple(training.betas)
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            in_head = training.head_learning_rate is not None and name.startswith(f"{head}.")
            decays = training.decay_all or parameter.ndim > 1
            groups.setdefault((in_head, decays), []).append(parameter)
    if not groups:
        raise UserError("no parameter of the model is trained: none has requires_grad=True")
    described = []
    for (in_head, decays), parameters in groups.items():
        rate = training.head_learning_rate if in_head else training.learning_rate
        described.append(
            {
                "params": parameters,
                "lr": torch.tensor(rate, device=device) if on_cuda else rate,
                "weight_decay": training.weight_decay if decays else 0.0,
            }
        )
    return made(described, **options)  # type: ignore[no-any-return]


def begin_state(optimizer: torch.optim.Optimizer) -> None:
    """Make the optimizer's state now, as it is before the first step: by a step that moves nothing.

    So it has a place of its own from the beginning, for captured graphs and for checkpoints.
    """
    settled = [dict(group) for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group.update(lr=0.0, weight_decay=0.0)
        for p in group["params"]:
            p.grad = torch.zeros_like(p)
    optimizer.step()
    optimizer.zero_grad()
    for group, before in zip(optimizer.param_groups, settled, strict=True):
        group.update(before)
    for state in optimizer.state.values():
        for name, value in state.items():
            value.fill_(1.0 if name == "mu_product" else 0.0)  # NAdam's is a product


def schedule(training: Training) -> Factor:
    """η_t/η of iteration t = 0, …, T − 1.

    In a warm-up of w iterations it is (t + 1)/w. After it, with s = (t − w)/(T − w): `constant` 1,
    `linear` 1 − s, `cosine` (1 + cos(π s))/2, `step` γ to the power of how many milestones t has
    reached.
    """
    warmup, total = training.warmup, training.iterations
    span = total - warmup

    def done(t: int) -> int:
        return min(t, total) - warmup

    factors: Mapping[str, Factor] = {
        "constant": lambda t: 1.0,
        "linear": lambda t: 1.0 - done(t) / span,
        "cosine": lambda t: 0.5 * (1.0 + math.cos(math.pi * done(t) / span)),
        "step": lambda t: training.gamma ** bisect_right(training.milestones, t),
    }
    after = factors[training.schedule]
    return lambda t: (t + 1) / warmup if t < warmup else after(t)
