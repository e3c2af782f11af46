"""The quantities of the paper's tables, each read from a run or from what was selected of it."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from robustmd.report.many import is_many
from robustmd.report.selection import AVERAGED, Selected
from robustmd.runs.run import Run


class Measured(Protocol):
    """What a run, or a part of it, says of its domains, and of those unseen: `Selected`."""

    @property
    def unseen(self) -> "Measured | None": ...
    @property
    def domains(self) -> tuple[str, ...]: ...
    @property
    def splits(self) -> tuple[str, ...]: ...
    def loss(self, split: str, domain: str) -> float: ...
    def accuracy(self, split: str, domain: str) -> float: ...
    def examples(self, split: str, domain: str) -> int: ...
    def training_size(self, domain: str) -> int: ...
    def worst_domain(self, split: str) -> str: ...
    def worst_loss(self, split: str) -> float: ...
    def worst_accuracy(self, split: str) -> float: ...
    def worst_tenth_loss(self, split: str) -> float: ...
    def worst_tenth_accuracy(self, split: str) -> float: ...


@dataclass(frozen=True)
class Quantity:
    """A loss [nats] or an accuracy [percent] of one domain, the worst, the worst tenth or all.

    The worst (`domain=None`) is taken within a run, f_w = max_k f_k and Acc_w = min_k Acc_k, so
    that a mean over seeds is a mean of worst values: domains (80, 90) and (90, 80) give 80, not 85.
    With `over="mean"` each of the K domains counts 1/K, however many examples it has; with
    `over="adjusted"` domain k counts n_k/Σ_j n_j, n_k the size of its training set; with
    `over="worst tenth"` each of the ⌈K/10⌉ worst, chosen within a run as the worst one is.
    None of them is over domains that were kept out of training, but where it is `unseen`: then all
    is of those.
    """

    kind: Literal["loss", "accuracy"]
    split: str
    domain: str | None = None
    over: Literal["worst", "worst tenth", "mean", "adjusted"] = "worst"
    unseen: bool = False

    def of(self, run: Measured) -> float:
        """The value in this run; NaN where the unseen domain has no sound measurement of it."""
        if self.unseen:
            return self._of_unseen(run.unseen)
        if self.domain is not None:
            return self._of_domain(run, self.domain)
        if self.over == "mean":
            return statistics.fmean(self._of_domain(run, domain) for domain in run.domains)
        if self.over == "adjusted":
            weights = zip(run.domains, self._weights(run), strict=True)
            return sum(weight * self._of_domain(run, domain) for domain, weight in weights)
        if self.over == "worst tenth":
            of = run.worst_tenth_loss if self.is_loss else run.worst_tenth_accuracy
            return of(self.split)
        return run.worst_loss(self.split) if self.is_loss else run.worst_accuracy(self.split)

    def _weights(self, run: Measured) -> list[float]:
        """What each domain counts in the mean, or in the adjusted one."""
        sizes = [run.training_size(d) if self.over == "adjusted" else 1 for d in run.domains]
        return [size / sum(sizes) for size in sizes]

    def resolution(self, run: Measured) -> float:
        """What one example more or less changes in this run [points]; 0 for a loss, which is
        continuous. Of a mean: the example that changes it most."""
        if self.is_loss:
            return 0.0
        if self.domain is not None or self.over not in ("mean", "adjusted"):
            return 100.0 / run.examples(self.split, self.domain or run.worst_domain(self.split))
        pairs = zip(self._weights(run), run.domains, strict=True)
        return max(100.0 * weight / run.examples(self.split, d) for weight, d in pairs)

    def _of_unseen(self, beside: Measured | None) -> float:
        if beside is None or self.split not in beside.splits:
            return math.nan
        return replace(self, unseen=False).of(beside)

    def _of_domain(self, run: Measured, domain: str) -> float:
        return run.loss(self.split, domain) if self.is_loss else run.accuracy(self.split, domain)

    @property
    def is_loss(self) -> bool:
        return self.kind == "loss"

    @property
    def is_worst(self) -> bool:
        """Of the domains that train."""
        return self.domain is None and self.over == "worst" and not self.unseen

    @property
    def measure(self) -> str:
        """ "train_loss", "train_accuracy", "test_accuracy"."""
        return f"{self.split}_{self.kind}"

    @property
    def name(self) -> str:
        """For a column of a CSV file: "worst_test_accuracy", "unseen_mnist_test_accuracy"."""
        where = self.over.replace(" ", "_") if self.domain is None else self.domain
        return f"{'unseen_' if self.unseen else ''}{where}_{self.measure}"


WORST_TRAIN_LOSS = Quantity("loss", "train")
WORST_TRAIN_ACCURACY = Quantity("accuracy", "train")
WORST_TEST_ACCURACY = Quantity("accuracy", "test")
MEAN_TEST_ACCURACY = Quantity("accuracy", "test", over="mean")
ADJUSTED_TEST_ACCURACY = Quantity("accuracy", "test", over="adjusted")
WORST_TENTH_TEST_ACCURACY = Quantity("accuracy", "test", over="worst tenth")


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


def table_quantities(domains: Sequence[str], runs: Sequence[Run] = ()) -> tuple[Quantity, ...]:
    """All columns of the paper's table, and the mean test accuracy over the domains; of many
    domains also the worst tenth and the mean on training; the adjusted average where the domains
    of `runs` are not of one size. Last the test accuracy of the domains that they kept out."""
    by_domain = [quantity for domain in domains for quantity in domain_quantities(domain)]
    of_all = (*worst_quantities(), MEAN_TEST_ACCURACY)
    if is_many(domains):
        of_all = summary_quantities()
    sizes = ({run.final["train"][name].examples for name in run.domains} for run in runs)
    adjusted = [ADJUSTED_TEST_ACCURACY] if any(len(found) > 1 for found in sizes) else []
    return (*by_domain, *of_all, *adjusted, *unseen_quantities(runs[0].unseen if runs else ()))


def unseen_quantities(unseen: Sequence[str]) -> tuple[Quantity, ...]:
    """acc_te of each domain kept out of training and, of several, of the worst of them."""
    each = [Quantity("accuracy", "test", name, unseen=True) for name in unseen]
    return (*each, replace(WORST_TEST_ACCURACY, unseen=True)) if len(each) > 1 else (*each,)


def summary_quantities() -> tuple[Quantity, ...]:
    """What is shown of many domains: loss_tr, acc_tr, acc_te of the worst, the worst tenth and
    the mean."""
    worst = (WORST_TRAIN_LOSS, WORST_TRAIN_ACCURACY, WORST_TEST_ACCURACY)
    tenths = (replace(quantity, over="worst tenth") for quantity in worst)
    means = (replace(quantity, over="mean") for quantity in worst)
    return (*worst, *tenths, *means)


def averaged(quantity: Quantity) -> Quantity:
    """The same of W̄ = (1/T) Σ_t W_t in place of W_T."""
    return replace(quantity, split=quantity.split + AVERAGED)


def returns_average(selected: Selected) -> bool:
    """Whether the run measured W̄ as well (Alg. 1 returns it)."""
    return all(f"{split}{AVERAGED}" in selected.splits for split in ("train", "test"))
