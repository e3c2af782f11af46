"""What a run says of itself: summary.json, its last line, its notes and warnings."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from robustmd.errors import listed
from robustmd.registry import METHODS, METRICS
from robustmd.runs.run import one_class_words
from robustmd.training.measure import worst

if TYPE_CHECKING:
    from robustmd.training.run import Run

LARGEST_MARGINAL_ERROR = 1e-3  # ‖Pᵀ1 − q‖₁ above which the OT direction is not to be trusted


def summary_of(run: Run, status: str, message: str | None) -> dict[str, Any]:
    """What summary.json holds. message: why it ended."""
    plan, learner, clock = run.plan, run.learner, run.clock
    config, domains = plan.config, plan.domains
    training = run.images.parts["train"].items()
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
        "parameters": sum(p.numel() for p in learner.model.parameters() if p.requires_grad),
        "effective_batch": run.batches.share * plan.drawn,
        "domains_per_batch": plan.drawn,
        "measured_examples": {name: len(run.subset.get(name, part)) for name, part in training},
    }
    if names := config.evaluation.metrics:  # what they are, so that who reads it needs not the code
        facts = ("unit", "better", "decimals")
        summary["metrics"] = {
            name: {fact: getattr(METRICS[name], fact) for fact in facts} for name in names
        }
    if config.training.loss != "cross_entropy":
        loss, targets = run.measured_loss, "numbers" if domains.are_numbers else "classes"
        summary["loss"] = {"name": loss.name, "unit": loss.unit, "targets": targets}
    summary["seconds"] = {
        "training": clock.training(),
        **{part: clock.seconds[part] for part in ("adversary", "data", "measurement", "start")},
        "preparation": run.preparation,
        "total": time.perf_counter() - run.begun,
    }
    # `final` has the constant predictions, for a report that gathers those of many runs.
    summary["warnings"] = [line for kind, line in warnings_of(run).items() if kind != "constant"]
    early = stopped_early(run)
    summary["notes"] = [*run.notes, *([early] if early else [])]
    if run.chooses_by_validation:
        value = run.best["value"]
        if value is None or not math.isfinite(value):
            value = None
        elif METRICS[run.by.metric].better == "larger":
            value = -value
        best = {"iteration": run.best["iteration"], "by": str(run.by), "value": value}
        summary |= {"best": best, "stopped_early": bool(early)}
    if learner.regret is not None and run.iteration > 0 and status != "diverged":
        summary["regret"] = learner.regret.summary(learner.adversary)
    if skipped := int(learner.adversary.skipped):
        summary["skipped_updates"] = skipped
    return summary | final_of(run) if status == "finished" else summary


def final_of(run: Run) -> dict[str, Any]:
    """What only a finished run has: its last measures and weights."""
    plan, rule = run.plan, run.learner.adversary
    found: dict[str, Any] = {
        "final": run.measures,
        "worst": {split: worst_of(run, split) for split in run.measures},
    }
    if plan.unseen:
        unseen = {split: worst_of(run, split, unseen=True) for split in run.measures}
        found["unseen_worst"] = unseen
    weights = {
        "weights": rule.weights.tolist(),
        "weights_mean": [total / run.iteration for total in run.weight_sums],
    }
    if METHODS.flag(plan.config.method.name, "averages"):  # Alg. 1 returns p̄ with W̄
        weights["weights_averaged"] = rule.average.tolist()  # type: ignore[operator]
    return found | {key: dict(zip(plan.trained, p, strict=True)) for key, p in weights.items()}


def worst_of(run: Run, split: str, unseen: bool = False) -> dict[str, float]:
    """Of the last measurement, over all domains but those of `data.unseen`, or over those.

    An individual model's worst is over the domains that it does not train on as well.
    """
    measures = run.measures[split].items()
    return worst({name: m for name, m in measures if (name in run.plan.unseen) == unseen})


def warnings_of(run: Run) -> dict[str, str]:
    """What a user should be told of the run so far, by kind."""
    found = dict(run.warned)
    if warning := run.watch.state["warning"]:
        found["weights"] = warning
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


def stopped_early(run: Run) -> str:
    """Why it ended before T; "" where it did not."""
    if run.end == run.training.iterations:
        return ""
    return (
        f"stopped early after iteration {run.end} of {run.training.iterations}: no better "
        f"{run.by} on validation in {run.best['since']} measurements, since iteration "
        f"{run.best['iteration']} (training.patience)"
    )


def verdict(run: Run) -> str:
    """One line for the person who waited."""

    def tested(unseen: bool = False) -> str:
        values = worst_of(run, "test", unseen)
        if "accuracy" in values:
            return f"test accuracy {values['accuracy']:.2f} %"
        return f"test loss {values['loss']:.4f}"  # of numbers, which have no accuracy

    beside, unseen = "", run.plan.unseen
    if unseen:
        which = "worst unseen" if len(unseen) > 1 else "unseen"
        beside = f"{which} {tested(unseen=True)} ({listed(unseen)}), "
    return (
        f"worst training loss {worst_of(run, 'train')['loss']:.4f}, worst {tested()}, "
        f"{beside}training {run.clock.training():.1f} s"
    )


def batch_notes(run: Run) -> list[str]:
    """What of a batch is not as it was asked for, or not as it is with fewer domains."""
    plan, share = run.plan, run.batches.share
    notes, asked = [], plan.config.training.batch_size
    if plan.drawn < len(plan.trained):
        notes.append(
            f"each iteration draws {plan.drawn} of {len(plan.trained)} domains, "
            f"with {share} of each's examples"
        )
    if plan.processes.size > 1:
        notes.append(f"{plan.processes.size} processes: each takes its part of every batch")
    if share * plan.drawn != asked:
        notes.append(
            f"training.batch_size={asked} is no multiple of {plan.drawn} domains: "
            f"{share * plan.drawn} examples an iteration, {share} of each"
        )
    return notes
