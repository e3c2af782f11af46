"""The parts that users write, tried on one batch before training: a fault is one line, not a
traceback after the first measurement."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from robustmd.domains.variants import BRIGHTEST
from robustmd.errors import UserError, first_line
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
    run.batches.go_to(0)
    if run.batches.augmentation is not None:
        try_augmentation(run)
    batch, model = run.batches.gather(), run.learner.model
    images, labels = batch.images[:TRIED], batch.labels[:TRIED]
    with undone(model):
        with evaluating(model):
            logits = try_model(run, images, labels, "")
            for name in run.evaluation.metrics:
                metric_value(name, logits, labels)
        try_loss(run, try_model(run, images, labels, " in training mode"), labels)
    try_rule(run)


@contextmanager
def undone(model: nn.Module) -> Iterator[None]:
    """What a forward pass does to the model's buffers and to torch's generators is taken back."""
    before = [(buffer, buffer.clone()) for buffer in model.buffers()]
    with torch.random.fork_rng({p.device for p in model.parameters() if p.is_cuda}):
        yield
    with torch.no_grad():
        for buffer, kept in before:
            buffer.copy_(kept)


@contextmanager
def said_as(what: str) -> Iterator[None]:
    """Whatever the user's own code raises within it is a UserError that begins with `what`."""
    try:
        yield
    except Exception as error:
        raise UserError(f"{what}: {first_line(error)}") from error


def shape_of(outputs: Any) -> Any:
    """As errors name it: [8, 3], or the type of what is no tensor."""
    return list(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__


def try_augmentation(run: Run) -> None:
    what = f"data.augment={run.plan.config.data.augment}"
    images, draw = run.batches.seen()
    wanted = [len(images), 3, *images.shape[1:3]]
    with said_as(f"{what}: fails for uint8 {wanted}"):
        after = run.batches.augmented(images, draw)
    if shape_of(after) != wanted:
        raise UserError(f"{what}: makes images {shape_of(after)} of {wanted}; the shape must stay")
    low, high = float(after.min()), float(after.max())
    if not after.float().isfinite().all():
        raise UserError(f"{what}: makes images that are not finite; must be in 0..{BRIGHTEST}")
    if int(images.max()) >= BRIGHT and high < FAINT:
        raise UserError(
            f"{what}: makes images from {low:.3g} to {high:.3g} of 0..{BRIGHTEST}; must be in "
            f"0..{BRIGHTEST}: multiply by {BRIGHTEST}, and leave standardising to the model"
        )


def try_model(run: Run, images: Tensor, labels: Tensor, mode: str) -> Tensor:
    takes = f"for {str(images.dtype).removeprefix('torch.')} {list(images.shape)}{mode}"
    try:
        outputs = run.learner.model(images)
    except Exception as error:  # of the user's own module, of any kind
        line = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise UserError(f"the model fails {takes}: {line}") from error
    wanted = [len(images), len(run.plan.domains.classes)]
    if labels.ndim == 2 and isinstance(outputs, Tensor) and outputs.ndim > 1:
        wanted = [len(images), *outputs.shape[1:]]  # of what shape else is the loss's to say
    if shape_of(outputs) != wanted:
        raise UserError(f"the model gives {shape_of(outputs)} {takes}; must give logits {wanted}")
    return outputs.float()  # type: ignore[no-any-return]


def try_loss(run: Run, outputs: Tensor, labels: Tensor) -> None:
    function, name = run.measured_loss.of, run.measured_loss.name
    what = (
        f"training.loss={name}: {function.__module__}.{function.__qualname__}: for outputs "
        f"{list(outputs.shape)} and labels {labels.dtype} {list(labels.shape)} must give a "
        f"floating-point tensor [{len(outputs)}], not"
    )
    with said_as(what):
        losses = run.learner.loss(outputs, labels)
    fault = ""
    if not isinstance(losses, Tensor):
        fault = type(losses).__name__
    elif list(losses.shape) != [len(outputs)] or not losses.is_floating_point():
        kind = "" if losses.is_floating_point() else f"{losses.dtype} "
        fault = f"{kind}{list(losses.shape)}"
    elif outputs.requires_grad and not losses.requires_grad:
        fault = "one without a gradient; leave out detach() and no_grad()"
    if fault:
        raise UserError(f"{what}: {fault}")


def try_rule(run: Run) -> None:
    """Raises UserError: its first answer is no distribution."""
    rule = copy.deepcopy(run.learner.adversary)
    what = f"the rule {type(rule).__module__}.{type(rule).__qualname__}"
    losses = torch.linspace(0.5, 1.5, rule.num_domains, device=rule.p.device)
    with said_as(f"{what} fails at its first update"):
        rule.update(losses)
        weights = rule.weights.tolist()
    total, least = sum(weights), min(weights)
    is_sound = abs(total - 1) <= SUM_TOLERANCE * max(1.0, *map(abs, weights))
    if not is_sound or (least < 0 and not rule.signed):
        shown = ", ".join(f"{weight:.3g}" for weight in weights[:4])
        signed = "" if rule.signed else ", none of them negative (or set signed = True)"
        raise UserError(
            f"{what} gives the weights {shown}{', …' if len(weights) > 4 else ''} at its first "
            f"update; must give {len(weights)} numbers of sum 1{signed}"
        )
