"""The quantities of the paper's tables, each read from what was selected of a run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from robustmd.metrics import REDUCERS
from robustmd.registry import METRICS, Metric
from robustmd.report.estimate import is_percentage
from robustmd.report.names import clean, is_many
from robustmd.report.selection import Selected
from robustmd.runs.run import CROSS_ENTROPY, LossName, Run

UNSEEN = "(unseen)"
Over = Literal["worst", "worst_tenth", "mean", "adjusted"]
MEANS = ("mean", "adjusted")  # over all domains; the others are taken within each measurement
LOSS, ACCURACY = METRICS["loss"], METRICS["accuracy"]
SHORT = {"accuracy": "acc"}  # in headings


@dataclass(frozen=True)
class Quantity:
    """A metric of one domain, the worst, the worst tenth or all, on one split.

    The worst (`domain=None`) is taken within a run, f_w = max_k f_k and Acc_w = min_k Acc_k, so
    that a mean over seeds is a mean of worst values: domains (80, 90) and (90, 80) give 80, not 85.
    With `over="mean"` each of the K domains counts 1/K, however many examples it has; with
    `over="adjusted"` domain k counts n_k/Σ_j n_j, n_k the size of its training set; with
    `over="worst_tenth"` each of the ⌈K/10⌉ worst, chosen within a run as the worst one is.
    None of them is over domains that were kept out of training, but where it is `unseen`: then all
    is of those.
    """

    kind: str  # a metric's name
    split: str
    domain: str | None = None
    over: Over = "worst"
    unseen: bool = False
    # as the runs describe one whose code is not here; no other quantity for that
    recorded: Metric | None = field(default=None, compare=False)

    def of(self, run: Selected) -> float:
        """The value in this run; NaN where the unseen domain has no sound measurement of it."""
        if self.unseen:
            if run.unseen is None or self.split not in run.unseen.splits:
                return math.nan
            return replace(self, unseen=False).of(run.unseen)
        values = run.values(self.kind, self.split)
        if self.domain is not None:
            return float(values[:, run.places[self.domain]].mean())
        if self.over not in MEANS:
            return float(REDUCERS[self.over](values, self.metric.better).mean())
        counts = self._counts(run)
        products = (n * x for n, x in zip(counts, values.mean(axis=0), strict=True))
        return math.fsum(products) / sum(counts)

    def _counts(self, run: Selected) -> list[int]:
        """What each domain counts in the mean, or in the adjusted one."""
        adjusted = self.over == "adjusted"
        return [run.run.final["train"][d].examples if adjusted else 1 for d in run.run.domains]

    def resolution(self, run: Selected) -> float:
        """What one example more or less changes in this run [points]; 0 for a loss, which is
        continuous. Of a mean: the example that changes it most."""
        if not is_percentage(self.metric):
            return 0.0
        if self.domain is not None or self.over not in MEANS:
            return 100.0 / run.examples(self.split, self.domain or run.worst_domain(self.split))
        counts = self._counts(run)
        pairs = zip(counts, run.run.domains, strict=True)
        return max(100.0 * n / sum(counts) / run.examples(self.split, d) for n, d in pairs)

    @property
    def metric(self) -> Metric:
        return self.recorded or METRICS[self.kind]

    def measured_by(self, loss: LossName) -> "Quantity":
        """The same of runs with this loss: in its unit, and where there is no accuracy, the loss in
        its place."""
        kind = "loss" if loss.targets == "numbers" and self.kind == "accuracy" else self.kind
        if kind != "loss" or loss == CROSS_ENTROPY:
            return self
        return replace(self, kind=kind, recorded=replace(LOSS, unit=loss.unit))

    @property
    def is_worst(self) -> bool:
        """Of the domains that train."""
        return self.domain is None and self.over == "worst" and not self.unseen

    @property
    def is_worst_test(self) -> bool:
        """What a method is judged by: of classes the worst test accuracy."""
        return self.is_worst and self.split == "test"

    @property
    def measure(self) -> str:
        """ "train_loss", "train_accuracy", "test_accuracy"."""
        return f"{self.split}_{self.kind}"

    @property
    def short(self) -> str:
        """ "loss_tr", "acc_te"."""
        return f"{SHORT.get(self.kind, self.kind)}_{self.split[:2]}"

    @property
    def where(self) -> str:
        """ "mnist", "worst", "mean", "sketch (unseen)"."""
        name = self.over.replace("_", " ") if self.domain is None else self.domain
        return clean(f"{name} {UNSEEN}" if self.unseen else name)

    @property
    def name(self) -> str:
        """For a column of a CSV file: "worst_test_accuracy", "unseen_mnist_test_accuracy"."""
        where = self.over if self.domain is None else self.domain
        return f"{'unseen_' if self.unseen else ''}{where}_{self.measure}"


WORST_TRAIN_LOSS = Quantity("loss", "train")
WORST_TRAIN_ACCURACY = Quantity("accuracy", "train")
WORST_TEST_ACCURACY = Quantity("accuracy", "test")
MEAN_TEST_ACCURACY = Quantity("accuracy", "test", over="mean")
ADJUSTED_TEST_ACCURACY = Quantity("accuracy", "test", over="adjusted")
# Of a domain, in the paper's order: loss_tr, acc_tr, acc_te.
PAPERS = (WORST_TRAIN_LOSS, WORST_TRAIN_ACCURACY, WORST_TEST_ACCURACY)


def table_quantities(domains: Sequence[str], runs: Sequence[Run] = ()) -> tuple[Quantity, ...]:
    """All columns of the paper's table, and the mean test accuracy over the domains; of many
    domains also the worst tenth and the mean on training; the adjusted average where the domains
    of `runs` are not of one size. Last the test accuracy of the domains that they kept out."""
    by_domain = [replace(one, domain=domain) for domain in domains for one in PAPERS]
    # Acc_w as in the paper, and the worst training loss, which it plots
    few = (*PAPERS[1:], *PAPERS[:1], MEAN_TEST_ACCURACY)
    of_all = summary_quantities() if is_many(domains) else few
    sizes = ({run.final["train"][name].examples for name in run.domains} for run in runs)
    adjusted = [ADJUSTED_TEST_ACCURACY] if any(len(found) > 1 for found in sizes) else []
    unseen = unseen_quantities(runs[0].unseen if runs else ())
    loss = runs[0].loss_name if runs else CROSS_ENTROPY
    columns = (*by_domain, *of_all, *adjusted, *unseen)
    return tuple(dict.fromkeys(column.measured_by(loss) for column in columns))


def unseen_quantities(unseen: Sequence[str]) -> tuple[Quantity, ...]:
    """acc_te of each domain kept out of training and, of several, of the worst of them."""
    each = [Quantity("accuracy", "test", name, unseen=True) for name in unseen]
    return (*each, replace(WORST_TEST_ACCURACY, unseen=True)) if len(each) > 1 else (*each,)


def summary_quantities() -> tuple[Quantity, ...]:
    """What is shown of many domains: loss_tr, acc_tr, acc_te of the worst, the worst tenth and
    the mean."""
    overs: tuple[Over, ...] = ("worst", "worst_tenth", "mean")
    return tuple(replace(quantity, over=over) for over in overs for quantity in PAPERS)
