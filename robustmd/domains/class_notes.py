"""Notes on a loaded data set: classes that a domain lacks or nobody trains on, tiny test splits."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from robustmd.domains.domain import DomainSet
from robustmd.domains.listing import few
from robustmd.errors import UserError

FEW_TESTED = 10  # images; with fewer, one of them moves the accuracy by more than 10 points


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


def with_test_notes(
    data: DomainSet, trained: Collection[str], say: Callable[[str], None]
) -> DomainSet:
    """The same domains, with notes on what is tested and not trained on, and on tiny test splits.

    trained: names of the domains that train; say: is called with each note

    Raises UserError if all examples are of one class: there is nothing to tell apart.
    """
    there = np.flatnonzero(data.class_masks().any(axis=0))
    if len(there) < 2:
        only = data.classes[there[0]]
        raise UserError(
            f"data {data.name}: one class in all domains ({only}); at least two are needed"
        )
    notes = [*_never_trained(data, trained), *_barely_tested(data)]
    for note in notes:
        say(note)
    return replace(data, notes=(*data.notes, *notes))


def _never_trained(data: DomainSet, trained: Collection[str]) -> list[str]:
    count = len(data.classes)
    training = [np.bincount(d.train.targets, minlength=count) for d in data if d.name in trained]
    tests = np.sum([np.bincount(d.test.targets, minlength=count) for d in data], axis=0)
    unknown = np.flatnonzero((np.sum(training, axis=0) == 0) & (tests > 0))
    if not len(unknown):
        return []
    shown = few([f"{data.classes[label]} ({tests[label]:,})" for label in unknown])
    return [
        "tested (so many images) without a training image in any domain that trains, so hardly "
        f"ever told right: {shown}"
    ]


def _barely_tested(data: DomainSet) -> list[str]:
    small = [f"{d.name} {d.test.stored}" for d in data if d.test.stored < FEW_TESTED]
    if not small:
        return []
    return [
        f"fewer than {FEW_TESTED} test images, so that one moves the accuracy by more than 10 "
        f"points: {few(small)}"
    ]
