"""What training changes: model, optimizer, adversary, and the averages of the model."""

from __future__ import annotations

import copy
import functools
import inspect
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import update_bn

from robustmd.adversary import RegretMeter
from robustmd.adversary.base import Adversary
from robustmd.backbones import build_backbone, head_of
from robustmd.backbones.weights import WeightsFile, load_weights
from robustmd.config.settings import OPTIMIZERS, Config, Training
from robustmd.errors import UserError
from robustmd.losses import cross_entropy
from robustmd.methods import build_adversary
from robustmd.registry import LOSSES, METHODS, BackboneFacts, MethodFacts
from robustmd.training.data import torch_seed

Loss = Callable[[Tensor, Tensor], Tensor]  # outputs [n, C], labels -> [n]


class Learner(nn.Module):
    """All that an iteration changes. Its state is one `state_dict`, beside the optimizer's.

    model; adversary; average: the mean of the iterates, for the methods that return it, or their
    moving average, where `training.ema` asks for it; regret: the adversary's, for methods that have
    one; loss: what batches train on; notes: lines about the weights that the model begins with.
    """

    def __init__(
        self,
        config: Config,
        facts: BackboneFacts,
        sizes: Sequence[int],
        device: torch.device,
        weights: WeightsFile | None = None,
    ) -> None:
        """sizes: n_k [K], the images that each domain trains on. Raises UserError."""
        super().__init__()
        training = config.training
        # Initial weights are drawn on the host, so that they are the same on every device.
        torch.manual_seed(torch_seed(config.seed, "initial weights"))
        model = build_backbone(config.backbone, facts)
        self.notes = [load_weights(model, weights, config.backbone, facts)] if weights else []
        self.model = model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        method = MethodFacts(len(sizes), training.iterations, sizes)
        self.adversary: Adversary = build_adversary(config.method, method).to(device)
        head = head_of(config.backbone, facts) if training.head_learning_rate is not None else None
        self.optimizer = build_optimizer(self.model, training, device, head)
        self.rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        self.schedule, self.clip_norm = schedule(training), training.clip_norm
        self.regret = RegretMeter.of(self.adversary) if self.adversary.has_regret else None
        averages = METHODS.flag(config.method.name, "averages") or training.ema is not None
        self.average = Average(self.model, training.ema) if averages else None
        self.loss: Loss = LOSSES[training.loss].of
        if training.label_smoothing:
            self.loss = functools.partial(cross_entropy, smoothing=training.label_smoothing)
        self.entrance = ""  # the layers that examples go into, where they are features

    def entered(self, model: nn.Module) -> nn.Module:
        """The part of the model, or of its average, that examples go into."""
        return model.get_submodule(self.entrance)

    def begin(self, iteration: int) -> None:
        """What the host does before an iteration: its learning rates, and W_t in the mean."""
        if self.average is not None and self.average.decay is None:
            self.average.include(self.model, 1.0 / (iteration + 1))
        factor = self.schedule(iteration)
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            if isinstance(group["lr"], Tensor):  # on the device: a CUDA graph reads it there
                group["lr"].fill_(rate * factor)
            else:
                group["lr"] = rate * factor

    def descend(self, loss: Tensor) -> None:
        """W_t -> W_{t+1}, down the gradient of `loss`, a scalar; a moving average with it."""
        self.optimizer.zero_grad()
        loss.backward()
        if self.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.optimizer.step()
        if self.average is not None and self.average.decay is not None:
            self.average.include(self.model, 1.0 - self.average.decay)

    def answer(self, losses: Tensor, present: Tensor | None) -> None:
        """p_t -> p_{t+1}, from f̂ᵗ [K]; present: bool [K], None: all are."""
        play = self.adversary.update(losses, present)
        if self.regret is not None:
            self.regret.update(play)


def computed(model: nn.Module, images: Tensor, precision: str) -> Tensor:
    """What the model gives, float32 [n, C]. Weights stay float32: with bf16 autocast rounds them
    for each product."""
    with torch.autocast(images.device.type, torch.bfloat16, enabled=precision == "bf16"):
        return model(images).float()  # type: ignore[no-any-return]


def build_optimizer(
    model: nn.Module, training: Training, device: torch.device, head: str | None = None
) -> torch.optim.Optimizer:
    """torch's optimizer of that name, over the parameters that train, those of the layers `head` at
    `training.head_learning_rate`.

    It is fused where torch has it so. On CUDA it reads η and counts steps on the device, so that a
    graph can hold it. Raises UserError: no parameter trains.
    """
    kinds = {name.lower(): k for name, k in vars(torch.optim).items() if isinstance(k, type)}
    kind, own = kinds[training.optimizer], OPTIMIZERS[training.optimizer]
    on_cuda, accepted = device.type == "cuda", inspect.signature(kind).parameters
    options: dict[str, Any] = {}
    if "fused" in accepted and (on_cuda or training.optimizer != "sgd"):  # sgd's rounding stays
        options["fused"] = True
    if "capturable" in accepted and on_cuda:
        options["capturable"] = True
    if own == "momentum":
        options["momentum"] = training.momentum
    elif own == "betas" and training.betas is not None:
        options["betas"] = tuple(training.betas)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            own_rate = training.head_learning_rate if name.startswith(f"{head}.") else None
            rate = training.learning_rate if own_rate is None else own_rate
            decay = training.weight_decay if training.decay_all or parameter.ndim > 1 else 0.0
            groups.setdefault((rate, decay), []).append(parameter)
    if not groups:
        raise UserError("no parameter of the model is trained: none has requires_grad=True")
    described = [
        {
            "params": parameters,
            "lr": torch.tensor(rate, device=device) if on_cuda else rate,
            "weight_decay": decay,
        }
        for (rate, decay), parameters in groups.items()
    ]
    return kind(described, **options)  # type: ignore[no-any-return]


def schedule(training: Training) -> Callable[[int], float]:
    """η_t/η of iteration t = 0, …, T − 1.

    In a warm-up of w iterations it is (t + 1)/w. After it, with s = (t − w)/(T − w): `constant` 1,
    `linear` 1 − s, `cosine` (1 + cos(π s))/2, `step` γ to the power of how many milestones t has
    reached.
    """
    warmup, total = training.warmup, training.iterations
    span = total - warmup

    def done(t: int) -> int:
        return min(t, total) - warmup

    factors: Mapping[str, Callable[[int], float]] = {
        "constant": lambda t: 1.0,
        "linear": lambda t: 1.0 - done(t) / span,
        "cosine": lambda t: 0.5 * (1.0 + math.cos(math.pi * done(t) / span)),
        "step": lambda t: training.gamma ** bisect_right(training.milestones, t),
    }
    after = factors[training.schedule]
    return lambda t: (t + 1) / warmup if t < warmup else after(t)


class Average(nn.Module):
    """The mean of a model's weights over the iterations, its first ones not among them; with
    `decay`, a moving average, which begins at these."""

    def __init__(self, model: nn.Module, decay: float | None) -> None:
        super().__init__()
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def include(self, model: nn.Module, share: float) -> None:
        """W̄ ← W̄ + share·(W − W̄): 1/t for the t-th of a mean; no host-device sync."""
        for mean, now in zip(self.model.parameters(), model.parameters(), strict=True):
            mean.lerp_(now, share)

    @torch.no_grad()
    def ready(self, model: nn.Module, batches: Iterable[Tensor]) -> nn.Module:
        """The averaged model with the buffers that `model` has now; batch-norm statistics are
        estimated on the batches, unless they are frozen."""
        for mean, now in zip(self.model.buffers(), model.buffers(), strict=True):
            mean.copy_(now)
        if all(m.training for m in self.model.modules() if isinstance(m, _BatchNorm)):
            update_bn(batches, self.model)
        return self.model
