"""What training changes: model, optimizer, adversary and what is kept about them."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import update_bn

from robustmd.adversary import RegretMeter
from robustmd.adversary.base import Adversary
from robustmd.backbones import build_backbone
from robustmd.backbones.networks.pretrained import WeightsFile, load_weights
from robustmd.config import settings
from robustmd.domains.domain import DomainSet
from robustmd.losses import cross_entropy
from robustmd.methods import build_adversary
from robustmd.registry import LOSSES, METHODS, BackboneFacts, MethodFacts
from robustmd.training.batches import content_hash, torch_seed

Factor = Callable[[int], float]  # t -> η_t/η_0
LossFunction = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # outputs, labels -> [n]


def constant(_: int) -> float:
    """The schedule of a learning rate that stays."""
    return 1.0


@dataclass
class Learner:
    """All that an iteration changes. With the seed, it is all that a run needs to go on.

    `factor` is the schedule of the optimizer's learning rates; `regret` measures the adversary's
    regret, for the methods that have one; `average` keeps W̄ = (1/T) Σ_t W_t, for the methods that
    return it; `logits` is the model as it computes in `precision` (fp32, tf32 or bf16); `notes` are
    lines about the weights that it began with; `loss` is what batches train on.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    adversary: Adversary
    factor: Factor = constant
    regret: RegretMeter | None = None
    average: IterateAverage | None = None
    precision: str = "fp32"
    notes: Sequence[str] = ()
    loss: LossFunction = cross_entropy
    iteration: int = 0  # iterations done
    measured: int = -1  # the last iteration after which the model was measured

    def __post_init__(self) -> None:
        self.enter_at("")
        self._rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        _begin_state(self.optimizer)

    def enter_at(self, part: str) -> None:
        """Let examples go into that part of the model from now on, by name: into its head, where
        they are features; "": into the whole."""
        self.entrance = part
        self.logits = self.in_precision(self.model)
        self.training_logits = self.logits

    def compile(self) -> None:
        """Train with `torch.compile`d passes from now on; measurements stay as they are."""
        self.training_logits = InPrecision(torch.compile(self.logits.model), self.precision)  # type: ignore[arg-type]

    def in_precision(self, model: nn.Module) -> InPrecision:
        """A model, this one or its average, as the run computes it, from where examples enter."""
        return InPrecision(model.get_submodule(self.entrance), self.precision)

    def count_average(self) -> None:
        """Count W_t in the average, where there is one; before the step to W_{t+1}."""
        if self.average is not None:
            self.average.include(self.model, self.iteration + 1)

    def advance(self) -> None:
        """The next iteration, with its learning rates; no host-device sync."""
        self.iteration += 1
        self._set_rates()

    def _set_rates(self) -> None:
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            now = rate * self.factor(self.iteration)
            if isinstance(group["lr"], torch.Tensor):  # on the device: captured steps read it there
                group["lr"].fill_(now)
            else:
                group["lr"] = now

    def state_dict(self) -> dict[str, Any]:
        """What changes while it runs, the same keys and shapes at any iteration."""
        return {
            "iteration": self.iteration,
            "measured": self.measured,
            "optimizer": {"state": dict(enumerate(map(dict, self._optimizer_states)))},
            **{name: part.state_dict() for name, part in self._parts.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there, in place. What the settings say, as learning rates, is not taken from
        `state`."""
        self.iteration, self.measured = state["iteration"], state["measured"]
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        for i, mine in enumerate(self._optimizer_states):
            for name, value in mine.items():
                value.copy_(state["optimizer"]["state"][i][name])
        self._set_rates()

    @property
    def _optimizer_states(self) -> list[dict[str, torch.Tensor]]:
        parameters = (p for group in self.optimizer.param_groups for p in group["params"])
        return [self.optimizer.state[p] for p in parameters if self.optimizer.state.get(p)]

    @property
    def _parts(self) -> dict[str, nn.Module]:
        parts = {
            "model": self.model,
            "adversary": self.adversary,
            "regret": self.regret,
            "average": self.average,
        }
        return {name: part for name, part in parts.items() if part is not None}

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
    seen = BackboneFacts.of(domains)
    model = build_backbone(config.backbone, seen)
    notes = [load_weights(model, weights, config.backbone, seen)] if weights else []
    model = model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    training, method = config.training, config.method
    facts = MethodFacts(num_trained, training.iterations, sizes)
    adversary = build_adversary(method, facts).to(device)
    return Learner(
        model,
        build_optimizer(model, training, device),
        adversary,
        schedule(training.schedule, training.iterations),
        RegretMeter.of(adversary) if adversary.has_regret else None,
        IterateAverage(model) if METHODS.flag(method.name, "averages") else None,
        config.runtime.precision,
        notes,
        training_loss(training),
    )


def training_loss(training: settings.Training) -> LossFunction:
    """`training.loss`, with what batches alone have of it."""
    if training.label_smoothing:
        return functools.partial(cross_entropy, smoothing=training.label_smoothing)
    return LOSSES[training.loss].of


def build_optimizer(
    model: nn.Module, training: settings.Training, device: torch.device
) -> torch.optim.Optimizer:
    """SGD; on CUDA fused, one kernel that reads η from the device, so that a graph can hold it."""
    on_cuda = device.type == "cuda"
    rate = training.learning_rate
    return torch.optim.SGD(
        [p for p in model.parameters() if p.requires_grad],
        lr=torch.tensor(rate, device=device) if on_cuda else rate,
        momentum=training.momentum,
        weight_decay=training.weight_decay,
        fused=True if on_cuda else None,
    )


def schedule(name: str, iterations: int) -> Factor:
    """`constant`: η throughout. `cosine`: η (1 + cos(π t/T))/2, from η at t = 0 to 0 at T."""
    factors: Mapping[str, Factor] = {
        "constant": constant,
        "cosine": lambda t: 0.5 * (1.0 + math.cos(math.pi * min(t, iterations) / iterations)),
    }
    return factors[name]


def _begin_state(optimizer: torch.optim.Optimizer) -> None:
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
        bf16 = self.precision == "bf16"
        with torch.autocast(images.device.type, torch.bfloat16, enabled=bf16):
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
        """The averaged model, batch-norm statistics estimated on the batches unless frozen."""
        if all(m.training for m in self.model.modules() if isinstance(m, _BatchNorm)):
            update_bn(batches, self.model)
        return self.model
