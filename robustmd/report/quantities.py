"""The quantities of the paper's tables, each read from a run's final measurement."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from robustmd.runs.run import Run

AVERAGED = "_averaged"  # ends the splits that a run measured W̄ on, the mean of its iterates
SELECTION = "the final measurement (after the last iteration), on all examples of each split"


@dataclass(frozen=True)
class Quantity:
    """A loss [nats] or an accuracy [percent] of one domain, or of the run's worst domain.

    The worst (`domain=None`) is taken within a run, f_w = max_k f_k and Acc_w = min_k Acc_k, so
    that a mean over seeds is a mean of worst values: domains (80, 90) and (90, 80) give 80, not 85.
    """

    kind: Literal["loss", "accuracy"]
    split: str
    domain: str | None = None

    def of(self, run: Run) -> float:
        """The value in this run."""
        if self.domain is None:
            return run.worst_loss(self.split) if self.is_loss else run.worst_accuracy(self.split)
        if self.is_loss:
            return run.loss(self.split, self.domain)
        return run.accuracy(self.split, self.domain)

    @property
    def is_loss(self) -> bool:
        return self.kind == "loss"

    @property
    def measure(self) -> str:
        """ "train_loss", "train_accuracy", "test_accuracy"."""
        return f"{self.split}_{self.kind}"

    @property
    def name(self) -> str:
        """For a column of a CSV file: "worst_test_accuracy", "mnist_train_loss"."""
        return f"{'worst' if self.domain is None else self.domain}_{self.measure}"


WORST_TRAIN_LOSS = Quantity("loss", "train")
WORST_TRAIN_ACCURACY = Quantity("accuracy", "train")
WORST_TEST_ACCURACY = Quantity("accuracy", "test")


def domain_quantities(domain: str) -> tuple[Quantity, ...]:
    """Of one domain, in the paper's order: loss_tr, acc_tr, acc_te."""
    return (
        Quantity("loss", "train", domain),
        Quantity("accuracy", "train", domain),
        Quantity("accuracy", "test", domain),
    )


def worst_quantities() -> tuple[Quantity, ...]:
    """Acc_w on train and test as in the paper, and the worst training loss, which it plots."""
    return (WORST_TRAIN_ACCURACY, WORST_TEST_ACCURACY, WORST_TRAIN_LOSS)


def table_quantities(domains: Sequence[str]) -> tuple[Quantity, ...]:
    """All columns of the paper's table."""
    by_domain = [quantity for domain in domains for quantity in domain_quantities(domain)]
    return (*by_domain, *worst_quantities())


def averaged(quantity: Quantity) -> Quantity:
    """The same of W̄ = (1/T) Σ_t W_t in place of W_T."""
    return replace(quantity, split=quantity.split + AVERAGED)


def returns_average(run: Run) -> bool:
    """Whether the run measured W̄ as well (Alg. 1 returns it)."""
    return all(f"{split}{AVERAGED}" in run.final for split in ("train", "test"))
