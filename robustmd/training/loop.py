"""The loop, on one page: sample, one forward pass, weigh, one SGD step, update the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from robustmd.training.batches import BatchStream
from robustmd.training.clock import Clock
from robustmd.training.history import History
from robustmd.training.learner import Learner
from robustmd.training.resident import ResidentExamples, gather_batch


@dataclass(frozen=True)
class Events:
    """What happens between iterations; each is called with the learner as it then is."""

    is_due: Callable[[int], bool]  # is a measurement due after this many iterations?
    measure: Callable[[], None]
    log: Callable[[], None]
    checkpoint: Callable[[], None]
    checkpoint_every: int
    full_losses: Callable[
        [], torch.Tensor
    ]  # f(W_t), [K]: for adversaries that feed on the data set
    check_stop: Callable[[], None]


def domain_losses(logits: torch.Tensor, labels: torch.Tensor, num_domains: int) -> torch.Tensor:
    """f̂ᵗ, [K]: mean cross entropy (nats) of each domain's share of the batch.

    Args:
        logits: float [K·m, C], the domains' equal shares one after another.
        labels: int64 [K·m].
        num_domains: K.
    """
    per_example = functional.cross_entropy(logits.float(), labels, reduction="none")
    return per_example.view(num_domains, -1).mean(1)


def train(
    learner: Learner,
    iterations: int,
    batches: BatchStream,
    examples: list[ResidentExamples],
    history: History,
    clock: Clock,
    events: Events,
) -> None:
    """Run `learner` up to `iterations` (T): Alg. 1 and 2, with every rule for the weights p.

    The model's step takes p_t, and p_{t+1} comes from the same losses, at W_t. p is never
    differentiated through. Nothing in an iteration makes the host wait for the device.

    Raises:
        Diverged: a loss was not finite (seen when the history is read).
        Interrupted: from `events.check_stop`, always between two iterations.
    """
    while True:
        if events.is_due(learner.iteration) and learner.measured < learner.iteration:
            events.measure()
            learner.measured = learner.iteration
        if learner.iteration == iterations:
            return
        events.check_stop()

        adversary = learner.adversary
        if adversary.feeds_on == "dataset" and adversary.is_due(learner.iteration):
            adversary.update(events.full_losses())
        iterate(learner, batches, examples, history, clock)

        if history.full or learner.iteration == iterations:
            events.log()
        if learner.iteration % events.checkpoint_every == 0 and learner.iteration < iterations:
            events.checkpoint()


def iterate(
    learner: Learner,
    batches: BatchStream,
    examples: list[ResidentExamples],
    history: History,
    clock: Clock,
) -> None:
    """One iteration t: batch, f̂ᵗ at W_t, W_{t+1} with p_t, p_{t+1} from f̂ᵗ."""
    adversary = learner.adversary
    with clock.part("data"):
        images, labels = gather_batch(examples, batches.draw(learner.iteration))
    with clock.part("model"):
        losses = domain_losses(learner.logits(images), labels, len(examples))
        objective = adversary.weights @ losses
        learner.optimizer.zero_grad()
        objective.backward()
        if learner.average is not None:
            learner.average.include(learner.model, learner.iteration + 1)
        learner.optimizer.step()
        learner.schedule.step()
        history.record(adversary.weights, losses.detach())
    with clock.part("adversary"):
        if adversary.feeds_on == "batch":
            play = adversary.update(losses)
            if learner.regret is not None:
                learner.regret.update(play)
    learner.iteration += 1
