"""Holding out a share of every domain's training images."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from robustmd.domains.domain import Domain, DomainSet
from robustmd.errors import UserError


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
        # Domains of the same images (see noise.py) hold out the same ones: what one of them is
        # validated on, no other is trained on.
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
    entropy = [seed, *hashlib.sha256(name.encode()).digest()[:8]]
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))
    order = rng.permutation(total)
    # Sorted rows keep reading from the memory map sequential; batches draw at random anyhow.
    held, kept = np.sort(order[:count]), np.sort(order[count:])
    as_tested = replace(domain.train.views, variants=domain.test.views.variants)
    val = replace(domain.train.subset(held), views=as_tested)
    return replace(domain, train=domain.train.subset(kept), val=val)
