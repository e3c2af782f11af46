"""What must be known of a row and no run says of itself: seeds that are not in it, and models that
predict one class whatever they see."""

import math

import numpy as np

from robustmd.report.aggregate import Group, seed_of
from robustmd.report.many import MOST_NAMED, is_many, some_text
from robustmd.runs import files
from robustmd.runs.run import Run
from robustmd.runs.untrusted import Unreadable, read_array

SUSPICIOUS = 2.5  # times the accuracy of guessing: above, no data set here has so common a class


def troubles(group: Group) -> tuple[str, ...]:
    """Lines for the row: "seed 3 is not in it: diverged after 120 of 1000 iterations"."""
    lost = tuple(
        f"seed {seed_of(problem)} is not in it: {problem.reason}" for problem in group.unfinished
    )
    return (*lost, *_constant(group))


def _constant(group: Group) -> list[str]:
    found: dict[str, int] = {}
    for run in group.runs:
        for domain in constant_domains(run):
            found[domain] = found.get(domain, 0) + 1
    of = f"{len(group.runs)} run{'s' if len(group.runs) > 1 else ''}"
    if found and is_many(group.runs[0].domains):
        names = f"{some_text(list(found))} (up to {max(found.values())} of {of}; only the "
        return [
            f"predicts one class for every test image of {names}{MOST_NAMED} worst were looked at)"
        ]
    return [
        f"predicts one class for every test image of {domain} ({count} of {of})"
        for domain, count in found.items()
    ]


def constant_domains(run: Run) -> list[str]:
    """Domains on whose test set the final model predicts one class only.

    Read from predictions.npz, and only where the accuracy is near that of guessing (a report on
    many runs has no time for all); of many domains only of the `MOST_NAMED` worst. Without the
    file: where the accuracy is that of guessing.
    """
    classes = run.summary.get("classes")
    if not isinstance(classes, list) or len(classes) < 2:
        return []
    guessing = 100.0 / len(classes)
    looked_at = run.domains
    if is_many(looked_at):
        looked_at = tuple(sorted(looked_at, key=lambda d: run.accuracy("test", d))[:MOST_NAMED])
    return [
        domain
        for domain in looked_at
        if run.accuracy("test", domain) <= SUSPICIOUS * guessing and _is_constant(run, domain)
    ]


def _is_constant(run: Run, domain: str) -> bool:
    try:
        logits = read_array(run.path / files.PREDICTIONS, run.root, f"test/{domain}/logits")
    except Unreadable:
        return math.isclose(run.accuracy("test", domain), 100.0 / len(run.summary["classes"]))
    if logits.ndim != 2 or not logits.size or logits.dtype.kind != "f":
        return False
    predicted = np.argmax(logits, axis=1)
    return bool((predicted == predicted[0]).all())
