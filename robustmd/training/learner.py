"""What training changes: model, optimizer, adversary and what is kept about them."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import update_bn

from robustmd.adversary import RegretMeter
from robustmd.adversary.base import Adversary
from robustmd.backbones import build_backbone, head_of
from robustmd.backbones.networks.pretrained import WeightsFile, load_weights
from robustmd.config import settings
from robustmd.domains.domain import DomainSet
from robustmd.losses import cross_entropy
from robustmd.methods import build_adversary
from robustmd.registry import LOSSES, METHODS, BackboneFacts, MethodFacts
from robustmd.training.batches import content_hash, torch_seed
from robustmd.training.optimizers import Factor, begin_state, build_optimizer, schedule
from robustmd.training.ranks import here

LossFunction = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # outputs, labels -> [n]


@dataclass
class Learner:
    """All that an iteration changes. With the seed, it is all that a run needs to go on.

    `factor` is the schedule of the optimizer's learning rates; `clip_norm` the largest norm of a
    gradient; `regret` measures the adversary's regret, for the methods that have one; `average` is
    the mean of the iterates, for the methods that return it, or their moving average, where it is
    asked for; `logits` is the model as it computes in `precision` (fp32, tf32 or bf16); `notes` are
    lines about the weights that it began with; `loss` is what batches train on.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    adversary: Adversary
    factor: Factor = lambda t: 1.0
    clip_norm: float | None = None
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
        begin_state(self.optimizer)
        self._set_rates()

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
        """Count W_t in the mean, where there is one; before the step to W_{t+1}."""
        if self.average is not None and self.average.decay is None:
            self.average.include(self.model, 1.0 / (self.iteration + 1))

    def step(self, loss: torch.Tensor) -> None:
        """W_{t+1}: the optimizer's step down `loss`, over all processes, which a graph can hold."""
        self.optimizer.zero_grad()
        loss.backward()
        here().sum_gradients(self.model)
        if self.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.optimizer.step()
        if self.average is not None and self.average.decay is not None:
            self.average.include(self.model, 1.0 - self.average.decay)

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

    num_trained: K, the domains that train; sizes: n_k, how many images each of them trains on;
    weights: the file that the model begins with.
    """
    torch.manual_seed(torch_seed(config.seed, "initial weights"))  # on the host, for any device
    of_data = BackboneFacts.of(domains)
    model = build_backbone(config.backbone, of_data)
    notes = [load_weights(model, weights, config.backbone, of_data)] if weights else []
    model = model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    training, method = config.training, config.method
    facts = MethodFacts(num_trained, training.iterations, sizes)
    adversary = build_adversary(method, facts).to(device)
    own_rate = training.head_learning_rate is not None
    head = head_of(config.backbone, of_data) if own_rate else None
    averages = METHODS.flag(method.name, "averages") or training.ema is not None
    return Learner(
        model,
        build_optimizer(model, training, device, head),
        adversary,
        schedule(training),
        training.clip_norm,
        RegretMeter.of(adversary) if adversary.has_regret else None,
        IterateAverage(model, training.ema) if averages else None,
        config.runtime.precision,
        notes,
        training_loss(training),
    )


def training_loss(training: settings.Training) -> LossFunction:
    """`training.loss`, with what batches alone have of it."""
    if training.label_smoothing:
        return functools.partial(cross_entropy, smoothing=training.label_smoothing)
    return LOSSES[training.loss].of


class InPrecision(nn.Module):
    """A model that computes in fp32, tf32 or bf16 (see `records.set_up`), answering in float32. Its
    weights stay float32; with bf16 autocast rounds them for each product."""

    def __init__(self, model: nn.Module, precision: str) -> None:
        super().__init__()
        self.model, self.precision = model, precision

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits, float32 [n, C], of images float32 [n, 3, H, W]."""
        bf16 = self.precision == "bf16"
        with torch.autocast(images.device.type, torch.bfloat16, enabled=bf16):
            return self.model(images).float()  # type: ignore[no-any-return]


class IterateAverage(nn.Module):
    """The mean of a model's weights over the iterations, its first ones not among them; with
    `decay`, a moving average, which begins at these."""

    def __init__(self, model: nn.Module, decay: float | None = None) -> None:
        super().__init__()
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def include(self, model: nn.Module, share: float) -> None:
        """W̄ ← W̄ + share·(W − W̄): 1/t for the t-th of a mean; no host-device sync."""
        for mean, now in zip(self.model.parameters(), model.parameters(), strict=True):
            mean.lerp_(now, share)

    def ready(self, batches: Iterable[torch.Tensor]) -> nn.Module:
        """The averaged model, batch-norm statistics estimated on the batches unless frozen."""
        if all(m.training for m in self.model.modules() if isinstance(m, _BatchNorm)):
            update_bn(batches, self.model)
        return self.model
