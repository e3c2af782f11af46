"""What training changes: model, optimizer, schedule, adversary and what is kept about them."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import update_bn

from robustmd.adversary import RegretMeter
from robustmd.adversary.base import Adversary
from robustmd.backbones import build_backbone
from robustmd.backbones.networks.pretrained import WeightsFile, load_weights
from robustmd.config import settings
from robustmd.domains.domain import DomainSet
from robustmd.methods import build_adversary
from robustmd.registry import BACKBONES, METHODS, BackboneFacts, MethodFacts
from robustmd.training.seeds import content_hash, torch_seed


@dataclass
class Learner:
    """All that an iteration changes. With the seed, it is all that a run needs to go on.

    `regret` measures the adversary's regret, for the methods that have one; `average` keeps
    W̄ = (1/T) Σ_t W_t, for the methods that return it; `logits` is the model as it computes in
    `precision` (fp32, tf32 or bf16); `notes` are lines about the weights that it began with.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: LambdaLR
    adversary: Adversary
    regret: RegretMeter | None = None
    average: IterateAverage | None = None
    precision: str = "fp32"
    notes: Sequence[str] = ()
    iteration: int = 0  # iterations done
    measured: int = -1  # the last iteration after which the model was measured

    def __post_init__(self) -> None:
        self.logits = self.in_precision(self.model)
        self.training_logits = self.logits

    def compile(self) -> None:
        """Train with `torch.compile`d passes from now on; measurements stay as they are."""
        self.training_logits = self.in_precision(torch.compile(self.model))  # type: ignore[arg-type]

    def in_precision(self, model: nn.Module) -> InPrecision:
        """A model, this one or its average, as the run computes it."""
        return InPrecision(model, self.precision)

    def state_dict(self) -> dict[str, Any]:
        """What changes while it runs, the same keys and shapes at any iteration."""
        buffers = (
            (p, self.optimizer.state.get(p, {}).get("momentum_buffer")) for p in self._with_momentum
        )
        momentum = {
            i: {"momentum_buffer": torch.zeros_like(p) if buffer is None else buffer}
            for i, (p, buffer) in enumerate(buffers)
        }
        return {
            "iteration": self.iteration,
            "measured": self.measured,
            "optimizer": {"state": momentum},
            **{name: part.state_dict() for name, part in self._parts.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there. What the settings say, as learning rates, is not taken from `state`."""
        self.iteration, self.measured = state["iteration"], state["measured"]
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        found = state["optimizer"]["state"]
        for i, p in enumerate(self._with_momentum):
            self.optimizer.state[p] = {
                "momentum_buffer": torch.zeros_like(p).copy_(found[i]["momentum_buffer"])
            }
        schedule = self.schedule
        schedule.last_epoch = self.iteration
        for group, rate, factor in zip(
            self.optimizer.param_groups, schedule.base_lrs, schedule.lr_lambdas, strict=True
        ):
            group["lr"] = rate * factor(self.iteration)

    @property
    def _parts(self) -> dict[str, nn.Module]:
        parts = {
            "model": self.model,
            "adversary": self.adversary,
            "regret": self.regret,
            "average": self.average,
        }
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def _with_momentum(self) -> list[nn.Parameter]:
        groups = self.optimizer.param_groups
        return [p for group in groups if group["momentum"] for p in group["params"]]

    def parameters(self) -> int:
        """How many numbers training changes."""
        return sum(p.numel() for p in self.model.parameters() if p.requires_grad)

    def weights_hash(self) -> str:
        """Hash of the model's weights as they are."""
        return content_hash(*(p.detach().cpu().numpy() for p in self.model.parameters()))


def build_learner(
    config: settings.Config,
    domains: DomainSet,
    num_trained: int,
    device: torch.device,
    sizes: Sequence[int] | None = None,
    weights: WeightsFile | None = None,
) -> Learner:
    """The learner as it is before the first iteration: the same initial weights on every device.

    Args:
        config: settled.
        domains: for the number of classes and the images' size.
        num_trained: K, the domains that train.
        device: where it goes.
        sizes: n_k, how many examples each of them trains on; for the methods that ask.
        weights: the file that the model begins with, None: none.
    """
    torch.manual_seed(torch_seed(config.seed, "initial weights"))  # on the host, for any device
    seen = BackboneFacts(len(domains.classes), domains.image_size)
    model = build_backbone(config.backbone, seen)
    head = BACKBONES.flag(config.backbone.name, "head")
    notes = [load_weights(model, weights, head)] if weights else []
    model = model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    training, method = config.training, config.method
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=training.learning_rate,
        momentum=training.momentum,
        weight_decay=training.weight_decay,
        fused=True if device.type == "cuda" else None,  # one kernel, and a graph can hold it
    )
    schedule = learning_rate_schedule(optimizer, training.schedule, training.iterations)
    facts = MethodFacts(num_trained, training.iterations, sizes)
    adversary = build_adversary(method, facts).to(device)
    regret = RegretMeter.of(adversary) if adversary.has_regret else None
    average = IterateAverage(model) if METHODS.flag(method.name, "averages") else None
    precision = config.runtime.precision
    return Learner(model, optimizer, schedule, adversary, regret, average, precision, notes)


def learning_rate_schedule(
    optimizer: torch.optim.Optimizer, schedule: str, iterations: int
) -> LambdaLR:
    """`constant`: η_w throughout. `cosine`: η_w (1 + cos(π t/T))/2, from η_w at t = 0 to 0 at T."""
    factors: dict[str, Callable[[int], float]] = {
        "constant": lambda t: 1.0,
        "cosine": lambda t: 0.5 * (1.0 + math.cos(math.pi * min(t, iterations) / iterations)),
    }
    return LambdaLR(optimizer, factors[schedule])


class InPrecision(nn.Module):
    """A model that computes in a precision and answers in float32.

    Args:
        model: its weights stay float32; with bf16 autocast rounds them for each product.
        precision: fp32, tf32 (see `allow_tf32`) or bf16.
    """

    def __init__(self, model: nn.Module, precision: str) -> None:
        super().__init__()
        self.model = model
        self.precision = precision

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits, float32 [n, C], of images float32 [n, 3, H, W]."""
        context: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if self.precision == "bf16":
            context = torch.autocast(images.device.type, torch.bfloat16)
        with context:
            logits: torch.Tensor = self.model(images)
        return logits.float()


class IterateAverage(nn.Module):
    """The running mean of a model's weights over the iterations.

    Args:
        model: as it is before the first iteration; its weights count from `include` on.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def include(self, model: nn.Module, t: int) -> None:
        """Count W_t, t = 1, 2, … (W̄_t = W̄_{t−1} + (W_t − W̄_{t−1})/t); no host-device sync."""
        for mean, now in zip(self.model.parameters(), model.parameters(), strict=True):
            mean.lerp_(now, 1.0 / t)

    def ready(self, batches: Iterable[torch.Tensor]) -> nn.Module:
        """The averaged model, any batch-norm statistics estimated on the batches."""
        update_bn(batches, self.model)
        return self.model
