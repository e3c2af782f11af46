"""Holding out a share of every domain's training examples."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np

from robustmd.domains.checksums import array_sha256
from robustmd.domains.domain import Domain, DomainSet
from robustmd.errors import UserError


def hold_out(data: DomainSet, share: float, seed: int) -> DomainSet:
    """What `DomainSet.with_validation` says. The fingerprint then covers the choice as well."""
    if not 0 <= share < 1:
        raise UserError(f"data.validation={share}: allowed is a share from 0 to below 1")
    if share == 0:
        return data
    domains = tuple(_split(domain, share, seed) for domain in data.domains)
    chosen = [array_sha256(d.val.rows) for d in domains if d.val and d.val.rows is not None]
    text = json.dumps([data.fingerprint, "validation", chosen])
    return replace(data, domains=domains, fingerprint=hashlib.sha256(text.encode()).hexdigest())


def _split(domain: Domain, share: float, seed: int) -> Domain:
    if domain.val is not None:
        raise UserError(
            f"domain {domain.name} has a validation split of its own; use data.validation=0"
        )
    total = len(domain.train)
    if total < 2:
        raise UserError(
            f"domain {domain.name} has {total} training example, too few to hold any out; "
            "use data.validation=0"
        )
    count = min(max(1, round(share * total)), total - 1)
    entropy = [seed, *hashlib.sha256(domain.name.encode()).digest()[:8]]
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))
    order = rng.permutation(total)
    # Sorted rows keep reading from the memory map sequential; batches draw at random anyhow.
    held, kept = np.sort(order[:count]), np.sort(order[count:])
    return replace(domain, train=domain.train.subset(kept), val=domain.train.subset(held))
