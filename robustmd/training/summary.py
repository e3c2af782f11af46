"""What a run says of itself: summary.json, its last line, its notes on batches."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from robustmd.errors import listed
from robustmd.registry import METHODS, METRICS
from robustmd.runs.run import one_class_words

if TYPE_CHECKING:
    from robustmd.training.data import Batches
    from robustmd.training.plan import Plan
    from robustmd.training.run import Run

LARGEST_MARGINAL_ERROR = 1e-3  # ‖Pᵀ1 − q‖₁ above which the OT direction is not to be trusted


def summary_of(run: Run, status: str, message: str | None) -> dict[str, Any]:
    """What summary.json holds. message: why it ended."""
    plan, learner, clock = run.plan, run.learner, run.clock
    config, domains = plan.config, plan.domains
    summary: dict[str, Any] = {
        "status": status,
        "message": message,
        "data": config.data.name,
        "method": config.method.name,
        "seed": config.seed,
        "domains": list(domains.names),
        "trained": list(plan.trained),
        "unseen": list(plan.unseen),
        "classes": list(domains.classes),
        "image_size": list(domains.image_size),
        **({"tokens": True} if domains.are_tokens else {}),
        "licences": {domain.name: domain.licence for domain in domains},
        "iterations": config.training.iterations,
        "iterations_done": run.iteration,
        "parameters": learner.trained_numbers(),
        "effective_batch": run.batches.share * plan.drawn,
        "domains_per_batch": plan.drawn,
        "measured_examples": {
            name: len(run.subset.get(name, part))
            for name, part in run.images.parts["train"].items()
        },
    }
    if names := config.evaluation.metrics:  # what they are, so that who reads it needs not the code
        facts = ("unit", "better", "decimals")
        summary["metrics"] = {
            name: {fact: getattr(METRICS[name], fact) for fact in facts} for name in names
        }
    if config.training.loss != "cross_entropy":
        loss, targets = run.measured_loss, "numbers" if domains.are_numbers else "classes"
        summary["loss"] = {"name": loss.name, "unit": loss.unit, "targets": targets}
    parts = ("adversary", "data", "measurement", "start")
    summary["seconds"] = {
        "training": clock.training(),
        **{part: clock.seconds[part] for part in parts},
        "preparation": run.preparation,
        "total": time.perf_counter() - run.begun,
    }
    # `final` has the constant predictions, for a report that gathers those of many runs.
    said = warnings_of(run).items()
    summary["warnings"] = [line for kind, line in said if kind != "constant"]
    summary["notes"] = [*run.notes, *([run.early] if run.early else [])]
    if run.chooses_by_validation:
        summary["best"] = _best(run)
        summary["stopped_early"] = bool(run.early)
    if learner.regret is not None and run.iteration > 0 and status != "diverged":
        summary["regret"] = learner.regret.summary(learner.adversary)
    if skipped := int(learner.adversary.skipped):
        summary["skipped_updates"] = skipped
    return summary | _final(run) if status == "finished" else summary


def warnings_of(run: Run) -> dict[str, str]:
    """What a user should be told of the run so far, by kind."""
    found = dict(run.warned)
    if run.watch.warning:
        found["weights"] = run.watch.warning
    if run.marginal_error > LARGEST_MARGINAL_ERROR:
        found["marginal error"] = (
            f"Sinkhorn's sweeps left a marginal error of up to {run.marginal_error:.1e}: "
            "more method.sweeps, or a smaller method.nu, make the direction exact"
        )
    if skipped := int(run.learner.adversary.skipped):
        found["skipped"] = f"{skipped} updates of the weights skipped: a loss was not finite"
    if run.measured == run.end:
        constant = {
            split: [name for name, m in measures.items() if m["constant"]]
            for split, measures in run.measures.items()
        }
        if words := one_class_words(constant):
            found["constant"] = words
    return found


def _best(run: Run) -> dict[str, Any]:
    """Which measurement is the best, by what, and its value; null where that is no number."""
    value = run.best["value"]
    if value is None or not math.isfinite(value):
        value = None
    elif METRICS[run.by.metric].better == "larger":
        value = -value
    return {"iteration": run.best["iteration"], "by": str(run.by), "value": value}


def _final(run: Run) -> dict[str, Any]:
    """What only a finished run has."""
    plan, learner = run.plan, run.learner
    found: dict[str, Any] = {
        "final": run.measures,
        "worst": {split: run.worst(split) for split in run.measures},
    }
    if plan.unseen:
        found["unseen_worst"] = {split: run.worst(split, unseen=True) for split in run.measures}
    weights = {
        "weights": learner.adversary.weights.tolist(),
        "weights_mean": [total / run.iteration for total in run.weight_sums],
    }
    if METHODS.flag(plan.config.method.name, "averages"):  # Alg. 1 returns p̄ with W̄
        weights["weights_averaged"] = learner.adversary.average.tolist()  # type: ignore[operator]
    return found | {key: dict(zip(plan.trained, p, strict=True)) for key, p in weights.items()}


def verdict(run: Run) -> str:
    """One line for the person who waited."""
    beside, unseen = "", run.plan.unseen
    if unseen:
        which = "worst unseen" if len(unseen) > 1 else "unseen"
        beside = f"{which} {_test_words(run.worst('test', unseen=True))} ({listed(unseen)}), "
    return (
        f"worst training loss {run.worst('train')['loss']:.4f}, "
        f"worst {_test_words(run.worst('test'))}, "
        f"{beside}training {run.clock.training():.1f} s"
    )


def _test_words(worst: dict[str, float]) -> str:
    if "accuracy" in worst:
        return f"test accuracy {worst['accuracy']:.2f} %"
    return f"test loss {worst['loss']:.4f}"  # of numbers, which have no accuracy


def batch_notes(plan: Plan, batches: Batches) -> list[str]:
    """What of a batch is not as it was asked for, or not as it is with fewer domains."""
    notes, asked = [], plan.config.training.batch_size
    if plan.drawn < len(plan.trained):
        notes.append(
            f"each iteration draws {plan.drawn} of {len(plan.trained)} domains, "
            f"with {batches.share} of each's examples"
        )
    if plan.processes.size > 1:
        notes.append(f"{plan.processes.size} processes: each takes its part of every batch")
    if batches.share * plan.drawn != asked:
        notes.append(
            f"training.batch_size={asked} is no multiple of {plan.drawn} domains: "
            f"{batches.share * plan.drawn} examples an iteration, {batches.share} of each"
        )
    return notes
