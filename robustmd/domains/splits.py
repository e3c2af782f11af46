"""Seeded draws: a share held out for validation, a test split for a domain that has none."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from robustmd.domains.domain import Domain, DomainSet
from robustmd.errors import UserError


def stream(seed: int, name: str) -> np.random.Generator:
    """Random numbers that depend on the seed and on whose they are alone."""
    entropy = [seed, *hashlib.sha256(name.encode()).digest()[:8]]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def hold_out(data: DomainSet, share: float, seed: int) -> DomainSet:
    """What `DomainSet.with_validation` says. The fingerprint stays: it names the data, which the
    runs of a table share, while the choice is the seed's."""
    if not 0 <= share < 1:
        raise UserError(f"data.validation={share}: allowed is a share from 0 to below 1")
    if share == 0:
        return data
    drawn_as: dict[tuple[int, int], str] = {}
    domains = []
    for domain in data.domains:
        # Domains of the same images (see noise_and_rotation.py) hold out the same ones: what one
        # of them is validated on, no other is trained on.
        same = id(domain.train.images), id(domain.train.rows)
        name = drawn_as.setdefault(same, domain.name)
        domains.append(_split(domain, share, seed, name))
    return replace(data, domains=tuple(domains))


def _split(domain: Domain, share: float, seed: int, name: str) -> Domain:
    """Whole stored images go to either side, and a validation image is seen in the variants that a
    test image is: not in those that only expand a training set. `name` is whose choice it is: the
    domain's own, or that of the first of its images."""
    if domain.val is not None:
        raise UserError(
            f"domain {domain.name} has a validation split of its own; use data.validation=0"
        )
    total = domain.train.stored
    if total < 2:
        raise UserError(
            f"domain {domain.name} has {total} training example, too few to hold any out; "
            "use data.validation=0"
        )
    count = min(max(1, round(share * total)), total - 1)
    order = stream(seed, name).permutation(total)
    # Sorted rows keep reading from the memory map sequential; batches draw at random anyhow.
    held, kept = np.sort(order[:count]), np.sort(order[count:])
    as_tested = replace(domain.train.views, variants=domain.test.views.variants)
    val = replace(domain.train.subset(held), views=as_tested)
    return replace(domain, train=domain.train.subset(kept), val=val)


def seeded_split(
    labels: np.ndarray, share: float, seed: int, domain: str
) -> tuple[np.ndarray, np.ndarray]:
    """(train, test): sorted positions, int64, of the examples with these labels (int [n], n ≥ 2).

    The test split has round(share·n) examples, at least 1 and at most n − 1, of every class the
    same share but for rounding: the examples lie in the order of their classes, within a class in
    a random one, and every (1/share)-th is taken from a random start. It depends on the labels,
    the seed and the domain's name alone, so that all runs share it.
    """
    total = len(labels)
    count = min(max(1, round(share * total)), total - 1)
    rng = stream(seed, domain)
    by_class = np.lexsort((rng.random(total), labels))
    spaced = np.floor((np.arange(count) + rng.random()) * total / count).astype(np.int64)
    chosen = np.zeros(total, dtype=bool)
    chosen[by_class[spaced]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
