"""data.labels=per_domain: every domain is told apart into its own classes only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from robustmd.domains.domain import DomainSet
from robustmd.domains.listing import few


def with_own_labels(data: DomainSet, say: Callable[[str], None]) -> DomainSet:
    """The same domains, with classes that a domain lacks left out of its loss and accuracy.

    So domains that share only some of their labels train one model, the paper's open question. A
    domain's classes are those of all of its splits. For each domain that lacks some, a note says
    so; `say` is called with it.
    """
    notes = []
    for domain, absent in zip(data, ~data.class_masks(), strict=True):
        lacking = [name for name, out in zip(data.classes, absent, strict=True) if out]
        if lacking:
            there = len(data.classes) - len(lacking)
            notes.append(
                f"data.labels=per_domain: loss and accuracy of domain {domain.name} are over "
                f"its own {there} of {len(data.classes)} classes, without {few(lacking)}"
            )
    if not notes:
        notes = ["data.labels=per_domain: every domain has all classes, so it changes nothing"]
    for note in notes:
        say(note)
    return replace(data, labels="per_domain", notes=(*data.notes, *notes))
