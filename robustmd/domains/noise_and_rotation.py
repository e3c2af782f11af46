"""Domains made of one domain's images, which are changed where they are seen (see views.py).

data=digits_noise, data=pets_noise: K copies that differ in their pixels' noise, the paper's third
experiment. An image is in the same split in all K: what one trains on, no other is tested on.

data=digits_rotated: a grid of rotations × noise. Rotated MNIST (Ghifary et al. 2015): the images
are dealt out, so that no image is in two domains, and each domain's are turned by its angle. All
domains share the base's arrays, so that K = 1,000 take no more room than one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robustmd.domains.checksums import array_sha256, fingerprint
from robustmd.domains.domain import Domain, DomainSet, Examples
from robustmd.domains.examples import rotation
from robustmd.domains.splits import stream
from robustmd.errors import UserError


def noise_copies(base: DomainSet, domain: str, sigmas: Sequence[float], name: str) -> DomainSet:
    """The domains "sigma_0", "sigma_4", …: one of `base`'s domains with noise of each σ.

    base: its classes, notes and fingerprint are taken over
    domain: the one that is copied
    sigmas: σ_k ≥ 0 on the 0..255 scale, K ≥ 1 different ones, in the order of the domains
    name: of the data set

    Raises UserError for an unknown domain, and where two σ are the same or one is out of range.
    """
    copied = base[domain]
    domains = tuple(_with_noise(copied, sigma) for sigma in sigmas)
    checksums = {
        copy.name: {"base": base.fingerprint, "domain": domain, **copy.views_in_words()}
        for copy in domains
    }
    sha256 = fingerprint(name, base.classes, checksums)
    return replace(base, name=name, domains=domains, fingerprint=sha256)


def noisy_name(sigma: float) -> str:
    """What the domain with N(0, σ²) on its pixels is called."""
    return f"sigma_{sigma:g}"


def _with_noise(domain: Domain, sigma: float) -> Domain:
    noisy: dict[str, Any] = {
        split: replace(examples, views=replace(examples.views, sigma=float(sigma)))
        for split, examples in domain.splits.items()
    }
    source = f"{domain.source} + N(0, {sigma:g}²)" if sigma else domain.source
    return replace(domain, name=noisy_name(sigma), source=source, **noisy)


def rotated_grid(
    base: DomainSet,
    domain: str,
    angles: Sequence[float],
    sigmas: Sequence[float],
    split_seed: int,
    name: str,
) -> DomainSet:
    """The domains "rotate_0", "rotate_15", …, or "rotate_0_sigma_0", "rotate_0_sigma_4", ….

    base: its classes, notes and fingerprint are taken over
    domain: the one whose images are dealt out; K of the n of each split get n // K or one more
    angles: degrees counter-clockwise about the centre, finite, modulo 360 and to six digits
    sigmas: σ ≥ 0 on the 0..255 scale; [0] alone is left out of the names
    split_seed: 0 <= seed < 2**63: who gets which images
    name: of the data set

    The order of the domains: every σ of the first angle, then of the next. A domain's rows ascend.

    Raises UserError for an unknown domain, one that is turned already or is not square, a split of
    fewer images than domains, an angle or σ given twice or none, and values out of range.
    """
    dealt = base[domain]
    if any(examples.views.variants != ("identity",) for examples in dealt.splits.values()):
        raise UserError(f"domain {domain} is turned or flipped already; take one that is not")
    grid = [(_variant(angle), float(sigma)) for angle in angles for sigma in sigmas]
    hands = {
        split: _dealt(examples, len(grid), split_seed, f"{domain}/{split}")
        for split, examples in dealt.splits.items()
    }
    with_sigma = list(sigmas) != [0]
    domains = tuple(
        _seen_as(dealt, {split: hand[k] for split, hand in hands.items()}, *views, with_sigma)
        for k, views in enumerate(grid)
    )
    checksums = {
        d.name: _checksums(d) | {"base": base.fingerprint, "domain": domain} for d in domains
    }
    sha256 = fingerprint(name, base.classes, checksums)
    return replace(base, name=name, domains=domains, fingerprint=sha256)


def _variant(angle: float) -> str:
    try:
        return rotation(angle)
    except ValueError as error:
        raise UserError(str(error)) from None


def _dealt(examples: Examples, hands: int, seed: int, whose: str) -> list[np.ndarray]:
    """The split's rows, shuffled and dealt out like cards: `hands` sorted arrays int64.

    The shuffle depends on the number of images, the seed and `whose` alone.
    """
    if examples.stored < hands:
        raise UserError(
            f"{whose}: {examples.stored} images cannot be dealt out to {hands} domains; "
            "take fewer angles or sigmas"
        )
    order = stream(seed, whose).permutation(examples.stored).astype(np.int64)
    rows = order if examples.rows is None else examples.rows[order]
    # Sorted rows keep reading from the memory map sequential; batches draw at random anyhow.
    return [np.sort(rows[k::hands]) for k in range(hands)]


def _seen_as(
    base: Domain, rows: Mapping[str, np.ndarray], variant: str, sigma: float, with_sigma: bool
) -> Domain:
    """The base domain's images of these rows, split by split, in this variant with this noise."""

    seen: dict[str, Any] = {}
    for split, examples in base.splits.items():
        views = replace(examples.views, variants=(variant,), sigma=sigma)
        seen[split] = replace(examples, rows=rows[split], views=views)
    degrees = "0" if variant == "identity" else variant.removeprefix("rotate_")
    turned = "" if degrees == "0" else f", rotated by {degrees}°"
    noise = f" + N(0, {sigma:g}²)" if sigma else ""
    name = f"rotate_{degrees}" + (f"_sigma_{sigma:g}" if with_sigma else "")
    return replace(base, name=name, source=f"{base.source}{turned}{noise}", **seen)


def _checksums(domain: Domain) -> dict[str, str]:
    """What tells the domain from others of its base: its rows, by value, and its views."""
    rows = {
        f"{split}_rows": array_sha256(examples.rows)
        for split, examples in domain.splits.items()
        if examples.rows is not None
    }
    return rows | domain.views_in_words()
