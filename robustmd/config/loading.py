"""From the `data` group to the domains of a run, with notes on what their labels cannot tell."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from robustmd.config.settings import Config
from robustmd.domains.domain_set import DomainSet
from robustmd.errors import Say, UserError, listed
from robustmd.registry import DataFacts

FEW_TESTED = 10  # images; with fewer, one of them moves the accuracy by more than 10 points


def load_domains(config: Config, say: Say) -> DomainSet:
    """The data set that the config names: found or fetched, verified, prepared, split.

    Raises:
        UserError: files missing, damaged or not the official ones; one message says what to do.
    """
    data, facts = config.data, DataFacts(config.paths.folder, say)
    domains = data.load(facts) if inspect.signature(data.load).parameters else data.load()
    if not isinstance(domains, DomainSet):
        raise UserError(
            f"data={data.name}: load returned {type(domains).__name__}; it must return a "
            "robustmd.domains.DomainSet"
        )
    if getattr(data, "labels", "shared") == "per_domain":
        domains = with_own_labels(domains, say)
    if data.sizes is not None:
        domains = domains.with_sizes(data.sizes)
    if data.validation > 0:
        domains = domains.with_validation(data.validation, config.seed)
    return domains


def domain_names(config: Config) -> tuple[str, ...]:
    """The domains of the config's data set; loads it where it must. Raises UserError."""
    names: tuple[str, ...] = config.data.names()
    return names or load_domains(config, lambda _: None).names


def with_own_labels(data: DomainSet, say: Say) -> DomainSet:
    """The same domains, with classes that a domain lacks left out of its loss and accuracy.

    So domains that share only some of their labels train one model, the paper's open question. A
    domain's classes are those of all of its splits; notes say what each leaves out. Raises
    UserError if every domain has one class: there is nothing to learn.
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
                f"its own {there} of {len(data.classes)} classes, without {listed(lacking)}"
                + (": its loss is 0 whatever the model says" if there == 1 else "")
            )
    notes = notes or ["data.labels=per_domain: every domain has all classes, so it changes nothing"]
    return _with_notes(data, notes, say)


def with_test_notes(data: DomainSet, trained: Collection[str], say: Say) -> DomainSet:
    """The same domains, with notes on classes that are tested and that no domain of `trained` has,
    and on tiny test splits. Raises UserError if all examples are of one class."""
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
        shown = listed([f"{data.classes[label]} ({tests[label]:,})" for label in unknown])
        notes.append(
            "tested (so many images) without a training image in any domain that trains, so hardly "
            f"ever told right: {shown}"
        )
    small = [f"{d.name} {d.test.stored}" for d in data if d.test.stored < FEW_TESTED]
    if small:
        notes.append(
            f"fewer than {FEW_TESTED} test images, so that one moves the accuracy by more than 10 "
            f"points: {listed(small)}"
        )
    return _with_notes(data, notes, say)


def _with_notes(data: DomainSet, notes: list[str], say: Say) -> DomainSet:
    for note in notes:
        say(note)
    return replace(data, notes=(*data.notes, *notes))
