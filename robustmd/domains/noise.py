"""data=digits_noise, data=pets_noise: K copies of one domain that differ in their pixels' noise.

The paper's third experiment: each domain is the base domain with N(0, σ_k²) added to every pixel.
The copies share the base's arrays; the noise is added where the images are seen (see views.py). An
image is in the same split in all K domains: what one trains on, no other is tested on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from robustmd.domains.checksums import fingerprint
from robustmd.domains.domain import Domain, DomainSet, Examples


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
    def noisy(examples: Examples) -> Examples:
        return replace(examples, views=replace(examples.views, sigma=float(sigma)))

    return replace(
        domain,
        name=noisy_name(sigma),
        train=noisy(domain.train),
        test=noisy(domain.test),
        val=None if domain.val is None else noisy(domain.val),
        source=f"{domain.source} + N(0, {sigma:g}²)" if sigma else domain.source,
    )
