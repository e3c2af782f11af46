"""The loop, on one page: sample, one forward pass, weigh, one step of the model, new weights p."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from robustmd.losses import cross_entropy
from robustmd.training.batches import BatchStream, sent
from robustmd.training.history import Clock, History
from robustmd.training.learner import Learner, LossFunction
from robustmd.training.measurement import masked
from robustmd.training.pool import TrainingPool
from robustmd.training.ranks import here

if TYPE_CHECKING:
    from robustmd.training.session import Session


@dataclass(frozen=True)
class Parts:
    """What an iteration needs: who learns, from which batches of which images, and what is kept."""

    learner: Learner
    batches: BatchStream
    pool: TrainingPool
    history: History
    clock: Clock


Iterate = Callable[[Parts], None]


def train(session: Session, iteration: Iterate) -> None:
    """Train to the last iteration: Alg. 1 and 2, with every rule for the weights p.

    `iteration` is `iterate`, or does the same faster (see fast_iteration.py).

    The model's step takes p_t, and p_{t+1} comes from the same losses, at W_t. p is never
    differentiated through. Nothing in an iteration makes the host wait for the device.

    Raises:
        Diverged: a loss was not finite (seen when the history is read).
        Interrupted: the run was asked to stop, always between two iterations.
    """
    learner, adversary = session.learner, session.learner.adversary
    session.measure_if_due()
    while learner.iteration < session.end:
        here().begin(learner.iteration, session.stop)
        if adversary.feeds_on == "dataset" and adversary.is_due(learner.iteration):
            adversary.update(session.full_losses())  # f(W_t), [K], over the whole training sets
        iteration(session.parts)
        session.after_iteration()
        session.measure_if_due()


def iterate(parts: Parts, steps: Steps | None = None) -> None:
    """One iteration t: batch, f̂ᵗ at W_t, W_{t+1} with p_t, p_{t+1} from f̂ᵗ.

    A rule that `weighs` the current batch answers f̂ᵗ before the model's step: p_t is its answer.
    `steps`: what carries it out, of the same parts; None: plainly.
    """
    learner, clock, steps = parts.learner, parts.clock, steps or Steps(parts)
    weighs = losses_weighed(parts)
    with clock.part("data"):
        steps.draw()
        steps.gather()
    with clock.part("model"):
        steps.forward()
    if weighs == "current":
        with clock.part("adversary"):
            steps.answer()
    with clock.part("model"):
        learner.count_average()
        steps.descend()
        parts.history.record(learner.adversary.weights, *steps.whole)
    if weighs == "next":
        with clock.part("adversary"):
            steps.answer()
    if learner.adversary.looks_back:
        with clock.part("adversary"):
            steps.look_back()
    learner.advance()


class Steps:
    """What an iteration does; each step leaves to the next what it found."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def draw(self) -> None:
        self.drawn = self.parts.batches.draw(self.parts.learner.iteration)

    def gather(self) -> None:
        pool, domains = self.parts.pool, self.drawn.domains
        self.part = self.parts.batches.part_of(self.drawn)
        self.images, self.labels = pool.gather(self.part)
        self.domains = None if domains is None else sent(domains, pool.device)

    def forward(self) -> None:
        """f̂ᵗ, [M], or what this process's part of the batch adds to it; `whole`: of all."""
        self.losses = self._losses()
        self.whole = of_all(self.parts.learner, self.losses, self.domains)

    def _losses(self) -> torch.Tensor:
        learner, part = self.parts.learner, self.part
        logits = learner.training_logits(self.images)
        absent = self.parts.pool.absent_classes(part)
        rows = domain_losses(logits, self.labels, len(part.positions), absent, learner.loss)
        return self.parts.batches.means(rows)

    def answer(self) -> None:
        """The adversary's answer to f̂ᵗ, if it feeds on batches, and its play's score."""
        learner = self.parts.learner
        if learner.adversary.feeds_on == "batch":
            play = learner.adversary.update(*self.whole)
            if learner.regret is not None:
                learner.regret.update(play)

    def descend(self) -> None:
        """W_{t+1}: the optimizer's step on p_t·f̂ᵗ.

        Where only some `domains` (int64 [M]) are in the batch, on (K/M) Σ_{k drawn} p_k f̂_k, whose
        mean over the draws is p·f̂ for a p from before the draw: each is drawn with probability M/K.
        """
        weights = self.parts.learner.adversary.weights
        if self.domains is not None:
            weights = weights[self.domains] * (len(weights) / len(self.domains))
        self.parts.learner.step(weights @ self.losses)

    def look_back(self) -> None:
        """The batch's losses at W_{t+1}, for a rule that asks for them: a second forward pass."""
        learner = self.parts.learner
        with torch.no_grad():
            learner.adversary.look_back(*of_all(learner, self._losses(), self.domains))


def losses_weighed(parts: Parts) -> str:
    """Whose losses the answer to f̂ᵗ weighs: the "current" or the "next" iteration's.

    The rule's own `weighs`, but where an iteration draws some of the domains: then always the next,
    since weights that depend on the draw would make the step on the drawn domains a biased one.
    """
    return "next" if parts.batches.samples_domains else parts.learner.adversary.weighs


def domain_losses(
    logits: torch.Tensor,
    labels: torch.Tensor,
    num_domains: int,
    absent: torch.Tensor | None = None,
    loss: LossFunction = cross_entropy,
) -> torch.Tensor:
    """f̂ᵗ, [M]: mean loss of each domain's share of the batch.

    logits: float [M·m, C], the M domains' equal shares one after another; labels: int64 [M·m] or
    float [M·m, C]; absent: bool [M, C], the classes whose logits a domain's loss leaves out.
    """
    if absent is not None:
        absent = absent.repeat_interleave(len(labels) // num_domains, dim=0)
    logits = masked(logits.float(), absent)
    return loss(logits, labels).view(num_domains, -1).mean(1)


def of_all(
    learner: Learner, losses: torch.Tensor, drawn: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(losses [K], present: bool [K], None: all are) from the losses of the domains drawn (int64
    [M], None: all), or what each process adds to them."""
    losses = here().sum(losses.detach())
    if drawn is None:
        return losses, None
    blank = torch.zeros_like(learner.adversary.weights)
    present = torch.zeros_like(blank, dtype=torch.bool)
    return blank.index_copy(0, drawn, losses), present.index_fill(0, drawn, True)
