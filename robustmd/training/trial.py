"""The parts that users write, tried on one batch before training: a fault is one line, not a
traceback after the first measurement."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from robustmd.adversary.base import Adversary
from robustmd.domains.variants import BRIGHTEST
from robustmd.errors import UserError, first_line
from robustmd.registry import LOSSES
from robustmd.training.data import Batches
from robustmd.training.learner import Learner
from robustmd.training.measure import evaluating, metric_value

if TYPE_CHECKING:
    from robustmd.training.run import Run

TRIED = 8  # examples of a batch
SUM_TOLERANCE = 1e-4  # of the weights, which are float32
FAINT, BRIGHT = 16, 64  # images as bright as the one that become fainter than the other


def try_parts(run: Run) -> None:
    """Try the augmentation, the model, the loss, the metrics and the rule of a run that has not
    begun. Nothing is left changed.

    Raises:
        UserError: one of them fails, or gives what training cannot use.
    """
    learner, batches, classes = run.learner, run.batches, len(run.plan.domains.classes)
    batches.go_to(0)
    if batches.augmentation is not None:
        _try_augmentation(batches)
    batch = batches.gather()
    images, labels = batch.images[:TRIED], batch.labels[:TRIED]
    with _undone(learner.model):
        with evaluating(learner.model):
            logits = _try_model(learner, images, labels, classes, "")
            for name in run.evaluation.metrics:
                metric_value(name, logits, labels)
        logits = _try_model(learner, images, labels, classes, " in training mode")
        _try_loss(learner, run.measured_loss.name, logits, labels)
    _try_rule(learner.adversary)


@contextmanager
def _undone(model: nn.Module) -> Iterator[None]:
    """What a forward pass does to the model's buffers and to torch's generators is taken back."""
    before = [(buffer, buffer.clone()) for buffer in model.buffers()]
    devices = {buffer.device for buffer in model.parameters() if buffer.is_cuda}
    with torch.random.fork_rng(devices):
        yield
    with torch.no_grad():
        for buffer, kept in before:
            buffer.copy_(kept)


def _try_model(learner: Learner, images: Tensor, labels: Tensor, classes: int, mode: str) -> Tensor:
    takes = f"for {str(images.dtype).removeprefix('torch.')} {list(images.shape)}{mode}"
    try:
        outputs = learner.model(images)
    except Exception as error:  # of the user's own module, of any kind
        line = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise UserError(f"the model fails {takes}: {line}") from error
    given = list(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    wanted = [len(images), classes]
    if labels.ndim == 2 and isinstance(outputs, Tensor):  # of what shape else is the loss's to say
        wanted = [len(images), *outputs.shape[1:]] if outputs.ndim > 1 else wanted
    if given != wanted:
        raise UserError(f"the model gives {given} {takes}; must give logits {wanted}")
    return outputs.float()


def _try_loss(learner: Learner, name: str, outputs: Tensor, labels: Tensor) -> None:
    function = LOSSES[name].of
    what = f"training.loss={name}: {function.__module__}.{function.__qualname__}"
    shapes = f"outputs {list(outputs.shape)} and labels {labels.dtype} {list(labels.shape)}"
    fault = ""
    try:
        losses = learner.loss(outputs, labels)
    except Exception as error:  # of the user's own function, of any kind
        fault = first_line(error)
    else:
        if not isinstance(losses, Tensor):
            fault = type(losses).__name__
        elif list(losses.shape) != [len(outputs)] or not losses.is_floating_point():
            kind = "" if losses.is_floating_point() else f"{losses.dtype} "
            fault = f"{kind}{list(losses.shape)}"
        elif outputs.requires_grad and not losses.requires_grad:
            fault = "one without a gradient; leave out detach() and no_grad()"
    if fault:
        raise UserError(
            f"{what}: for {shapes} must give a floating-point tensor [{len(outputs)}], not: {fault}"
        )


def _try_rule(adversary: Adversary) -> None:
    """Raises UserError: its first answer is no distribution."""
    rule = copy.deepcopy(adversary)
    kind = type(rule)
    what = f"the rule {kind.__module__}.{kind.__qualname__}"
    losses = torch.linspace(0.5, 1.5, rule.num_domains, device=rule.p.device)
    try:
        rule.update(losses)
        weights = rule.weights.tolist()
    except Exception as error:  # of the user's own rule, of any kind
        raise UserError(
            f"{what} fails at its first update: {type(error).__name__}: {first_line(error)}"
        ) from error
    total, least = sum(weights), min(weights)
    is_sound = abs(total - 1) <= SUM_TOLERANCE * max(1.0, *map(abs, weights))
    if not is_sound or (least < 0 and not rule.signed):
        shown = ", ".join(f"{weight:.3g}" for weight in weights[:4])
        signed = "" if rule.signed else ", none of them negative (or set signed = True)"
        raise UserError(
            f"{what} gives the weights {shown}{', …' if len(weights) > 4 else ''} at its first "
            f"update; must give {len(weights)} numbers of sum 1{signed}"
        )


def _try_augmentation(batches: Batches) -> None:
    augmentation = batches.augmentation
    assert augmentation is not None
    what = f"data.augment={augmentation.name}"
    images, draw = batches.seen()
    wanted = [len(images), 3, *images.shape[1:3]]
    try:
        after = batches.augmented(images, draw)
    except Exception as error:  # of the user's own function, of any kind
        raise UserError(f"{what}: fails for uint8 {wanted}: {first_line(error)}") from error
    given = list(after.shape) if isinstance(after, Tensor) else type(after).__name__
    if given != wanted:
        raise UserError(f"{what}: makes images {given} of {wanted}; the shape must stay")
    low, high = float(after.min()), float(after.max())
    if not after.float().isfinite().all():
        raise UserError(f"{what}: makes images that are not finite; must be in 0..{BRIGHTEST}")
    if int(images.max()) >= BRIGHT and high < FAINT:
        raise UserError(
            f"{what}: makes images from {low:.3g} to {high:.3g} of 0..{BRIGHTEST}; must be in "
            f"0..{BRIGHTEST}: multiply by {BRIGHTEST}, and leave standardising to the model"
        )
