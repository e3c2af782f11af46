"""Notes on a loaded data set: classes that a domain lacks or nobody trains on, tiny test splits."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from robustmd.domains.domain import DomainSet
from robustmd.domains.listing import few
from robustmd.errors import UserError

Say = Callable[[str], None]
FEW_TESTED = 10  # images; with fewer, one of them moves the accuracy by more than 10 points


def with_own_labels(data: DomainSet, say: Say) -> DomainSet:
    """The same domains, with classes that a domain lacks left out of its loss and accuracy.

    So domains that share only some of their labels train one model, the paper's open question. A
    domain's classes are those of all of its splits. Notes say what each domain leaves out; `say` is
    called with them. Raises UserError if every domain has one class: there is nothing to learn.
    """
    if (data.class_masks().sum(axis=1) == 1).all():
        raise UserError(
            "data.labels=per_domain: every domain has one class, so its loss is 0 whatever the "
            "model says; use data.labels=shared"
        )
    data = replace(data, labels="per_domain")
    notes = []
    for domain, absent in zip(data, data.absent_classes(), strict=True):
        lacking = [name for name, out in zip(data.classes, absent, strict=True) if out]
        if lacking:
            there = len(data.classes) - len(lacking)
            notes.append(
                f"data.labels=per_domain: loss and accuracy of domain {domain.name} are over "
                f"its own {there} of {len(data.classes)} classes, without {few(lacking)}"
                + (": its loss is 0 whatever the model says" if there == 1 else "")
            )
    notes = notes or ["data.labels=per_domain: every domain has all classes, so it changes nothing"]
    return _with_notes(data, notes, say)


def with_test_notes(data: DomainSet, trained: Collection[str], say: Say) -> DomainSet:
    """The same domains, with notes on what is tested and not trained on, and on tiny test splits.

    trained: names of the domains that train; say: is called with each note

    Raises UserError if all examples are of one class: there is nothing to tell apart.
    """
    if data.are_numbers:
        return data
    there = np.flatnonzero(data.class_masks().any(axis=0))
    if len(there) < 2:
        only = data.classes[there[0]]
        raise UserError(
            f"data {data.name}: one class in all domains ({only}); at least two are needed"
        )
    count = len(data.classes)
    training = [np.bincount(d.train.targets, minlength=count) for d in data if d.name in trained]
    tests = np.sum([np.bincount(d.test.targets, minlength=count) for d in data], axis=0)
    unknown = np.flatnonzero((np.sum(training, axis=0) == 0) & (tests > 0))
    notes = []
    if len(unknown):
        shown = few([f"{data.classes[label]} ({tests[label]:,})" for label in unknown])
        notes.append(
            "tested (so many images) without a training image in any domain that trains, so hardly "
            f"ever told right: {shown}"
        )
    small = [f"{d.name} {d.test.stored}" for d in data if d.test.stored < FEW_TESTED]
    if small:
        notes.append(
            f"fewer than {FEW_TESTED} test images, so that one moves the accuracy by more than 10 "
            f"points: {few(small)}"
        )
    return _with_notes(data, notes, say)


def _with_notes(data: DomainSet, notes: list[str], say: Say) -> DomainSet:
    for note in notes:
        say(note)
    return replace(data, notes=(*data.notes, *notes))
