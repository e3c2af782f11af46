"""What a run says of itself and its data: summary.json, examples.png, its last line."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robustmd.domains.domain import EMBEDDABLE, DomainSet
from robustmd.domains.duplicates import duplicate_warnings, duplicates
from robustmd.domains.sheet import draw_sheet, evenly
from robustmd.errors import listed
from robustmd.registry import METRICS
from robustmd.training.session import TRAINING_PARTS, Session

MANY = 1_000_000  # images, above which a run does not look for duplicates itself: seconds
PICTURES, SIDE = 40, 48  # of examples.png, which stays below 150 kB but for noise
DOMAINS = 12


def summarise(
    session: Session, status: str, message: str | None, notes: list[str], spent: dict[str, float]
) -> dict[str, Any]:
    """What summary.json holds.

    Args:
        session: the run, under way or over.
        status: running, finished, interrupted, failed or diverged.
        message: why it ended, where that needs saying.
        notes: what is to be known of its data and settings.
        spent: seconds of the parts that the session does not time itself.
    """
    plan, clock, learner = session.plan, session.clock, session.learner
    config = plan.config
    summary: dict[str, Any] = {
        "status": status,
        "message": message,
        "data": config.data.name,
        "method": config.method.name,
        "seed": config.seed,
        "domains": list(plan.domains.names),
        "trained": list(plan.trained),
        "unseen": list(plan.unseen),
        "classes": list(plan.domains.classes),
        "licences": {domain.name: domain.licence for domain in plan.domains},
        "iterations": config.training.iterations,
        "iterations_done": learner.iteration,
        "parameters": learner.parameters(),
        "effective_batch": session.batches.effective_batch,
        "domains_per_batch": plan.domains_per_batch,
        "measured_examples": {
            name: len(session.subset.get(name, split))
            for name, split in session.splits["train"].items()
        },
        **_metrics(config.evaluation.metrics),
        "seconds": {
            "training": clock.seconds(*TRAINING_PARTS),
            "adversary": clock.seconds("adversary"),
            "data": clock.seconds("data"),
            "measurement": clock.seconds("measurement"),
            "start": clock.seconds("start"),
            **spent,
        },
        # `final` has the constant predictions, for a report that gathers those of many runs.
        "warnings": [line for kind, line in session.warnings().items() if kind != "constant"],
        "notes": notes,
    }
    if learner.regret is not None and learner.iteration > 0 and status != "diverged":
        summary["regret"] = learner.regret.summary(learner.adversary)
    if skipped := int(learner.adversary.skipped):
        summary["skipped_updates"] = skipped
    if status == "finished":
        predictions = config.evaluation.predictions
        summary["sha256"] = plan.directory.checksums(predictions=predictions)
        weights = learner.adversary.weights.tolist()
        summary["final"] = {
            split: {name: m.as_dict() for name, m in measures.items()}
            for split, measures in session.measures.items()
        }
        summary["worst"] = {split: session.worst(split) for split in session.measures}
        if plan.unseen:
            summary["unseen_worst"] = {
                split: session.worst(split, unseen=True) for split in session.measures
            }
        summary["weights"] = dict(zip(plan.trained, weights, strict=True))
        means = [total / learner.iteration for total in session.state.weight_sums]
        summary["weights_mean"] = dict(zip(plan.trained, means, strict=True))
        if learner.average is not None:  # Alg. 1 returns p̄ with W̄
            averaged = learner.adversary.average.tolist()  # type: ignore[operator]
            summary["weights_averaged"] = dict(zip(plan.trained, averaged, strict=True))
    return summary


def _metrics(names: Sequence[str]) -> dict[str, Any]:
    """What the metrics of measures.csv are, so that whoever reads it needs not the code."""
    about = {name: METRICS[name] for name in names}
    facts = ("unit", "better", "decimals")
    found = {name: {fact: getattr(one, fact) for fact in facts} for name, one in about.items()}
    return {"metrics": found} if found else {}


def verdict(session: Session) -> str:
    """One line for the person who waited."""
    unseen = session.plan.unseen
    train, test = session.worst("train"), session.worst("test")
    beside = ""
    if unseen:
        accuracy = session.worst("test", unseen=True)["accuracy"]
        which = "worst unseen" if len(unseen) > 1 else "unseen"
        beside = f"{which} test accuracy {accuracy:.2f} % ({listed(unseen)}), "
    return (
        f"worst training loss {train['loss']:.4f}, worst test accuracy {test['accuracy']:.2f} %, "
        f"{beside}training {session.clock.seconds(*TRAINING_PARTS):.1f} s"
    )


def data_warnings(domains: DomainSet, cache: Path) -> list[str]:
    """Images that are in two splits or two domains, a line each.

    Looked for once and kept in `cache`; among more than a million images only what `robustmd data`
    has found before is said.
    """
    return duplicate_warnings(duplicates(domains, cache, most=MANY) or ())


def example_sheet(domains: DomainSet) -> bytes | None:
    """A PNG with examples of the domains whose licence lets others see them; None without any.

    The same for all runs on the data.
    """
    shown = [domain.name for domain in domains if domain.licence in EMBEDDABLE]
    if not shown:
        return None
    stream = io.BytesIO()
    draw_sheet(domains, stream, only=evenly(shown, DOMAINS), most=PICTURES, side=SIDE)
    return stream.getvalue()
