"""What must be known of a row and no run says of itself: seeds that are not in it, and models that
predict one class whatever they see."""

from collections import Counter

from robustmd.report.aggregate import Group, seed_of
from robustmd.report.many import some_text
from robustmd.runs.run import constant_of


def troubles(group: Group) -> tuple[str, ...]:
    """Lines for the row: "seed 3 is not in it: diverged after 120 of 1000 iterations"."""
    lost = tuple(
        f"seed {seed_of(problem)} is not in it: {problem.reason}" for problem in group.unfinished
    )
    return (*lost, *_constant(group))


def _constant(group: Group) -> list[str]:
    tested = (constant_of(run.summary).get("test", ()) for run in group.runs)
    found = Counter(domain for domains in tested for domain in domains)
    of = f"{len(group.runs)} run{'s' if len(group.runs) > 1 else ''}"
    where = [f"{domain} ({count} of {of})" for domain, count in found.items()]
    return [f"predicts one class for every test image of {some_text(where)}"] if where else []
