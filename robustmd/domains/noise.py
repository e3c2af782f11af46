"""Data sets made of one domain's images, which are changed where they are seen (see `Views`).

`data=digits_noise`, `data=pets_noise`: K copies that differ in their pixels' noise, the paper's
third experiment. An image is in the same split in all K: what one trains on, no other is tested on.

`data=digits_rotated`: a grid of rotations × noise. Rotated MNIST (Ghifary et al. 2015): the images
are dealt out, so that no image is in two domains, and each domain's are turned by its angle. All
domains share the base's arrays, so that K = 1,000 take no more room than one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from robustmd.config.ranges import ANGLES, SEED, SIGMAS, SOME_SIGMAS, one_of
from robustmd.domains.digits import Digits
from robustmd.domains.digits_mini import DigitsMini, DigitsTyped
from robustmd.domains.domain_set import Domain, DomainSet, array_sha256, stream
from robustmd.domains.pets import Pets
from robustmd.errors import UserError
from robustmd.registry import DataFacts, data, key


class OneOfDigits(Digits):
    """What data sets that are made of one domain of digits have in common."""

    domain: str = key(
        "mnist",
        one_of("mnist", "svhn", "handwritten", "printed", "typed"),
        "the domain whose images are copied or dealt out",
    )

    def source(self, facts: DataFacts) -> DomainSet:
        """The data set that has `domain`, or of it that domain alone."""
        if self.svhn.extra and self.domain != "svhn":
            raise UserError(
                f"data.svhn.extra=true: only data.domain=svhn has it, not {self.domain}"
            )
        for shipped in (DigitsMini(), DigitsTyped()):
            if self.domain in shipped.names():
                return shipped.load(facts)
        return self.of([self.domain], facts)


@data("digits_noise", page="noise", order=2)
class DigitsNoise(OneOfDigits):
    """One domain of digits with added noise: a domain for each σ."""

    sigmas: list[float] = key([0.0, 4.0, 8.0, 12.0], SIGMAS, "σ of pixels in 0..255")

    def names(self) -> tuple[str, ...]:
        return tuple(map(noisy_name, self.sigmas))

    def load(self, facts: DataFacts) -> DomainSet:
        return noise_copies(self.source(facts), self.domain, self.sigmas, self.name)


@data("pets_noise", page="noise", order=5)
class PetsNoise(Pets):
    """One domain of pets with added noise: a domain for each σ."""

    domain: str = key("imagenet", one_of("imagenet", "vgg"), "the domain that is copied")
    sigmas: list[float] = key([0.0, 4.0, 8.0, 12.0], SIGMAS, "σ of pixels in 0..255")

    def names(self) -> tuple[str, ...]:
        return tuple(map(noisy_name, self.sigmas))

    def load(self, facts: DataFacts) -> DomainSet:
        return noise_copies(self.of([self.domain], facts), self.domain, self.sigmas, self.name)


@data("digits_rotated", page="noise", order=3)
class DigitsRotated(OneOfDigits):
    """Digits turned, and noisy if you like: a domain for each angle and σ."""

    angles: list[float] = key([0.0, 15.0, 30.0, 45.0, 60.0, 75.0], ANGLES, "degrees")
    sigmas: list[float] = key([0.0], SOME_SIGMAS, "σ of pixels in 0..255")
    split_seed: int = key(0, SEED, "deals the images out, whatever the run's seed")

    def check(self) -> None:
        if len(self.angles) * len(self.sigmas) < 2:
            raise UserError(
                f"data.angles={self.angles}: with data.sigmas={self.sigmas} they make one domain; "
                "a mixture needs two, as data.angles=[0,15]"
            )

    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in grid(self.angles, self.sigmas))

    def load(self, facts: DataFacts) -> DomainSet:
        base = self.source(facts)
        return rotated_grid(base, self.domain, self.angles, self.sigmas, self.split_seed, self.name)


def noisy_name(sigma: float) -> str:
    """The name of the domain with N(0, σ²) on its pixels."""
    return f"sigma_{sigma:g}"


def grid(angles: Sequence[float], sigmas: Sequence[float]) -> list[tuple[str, str, float]]:
    """Name, variant and σ of every domain: every σ of the first angle, then of the next. The names
    are "rotate_0", "rotate_15", …, or "rotate_0_sigma_0", … unless `sigmas` is [0] alone."""
    views = []
    for angle in angles:
        name = f"rotate_{angle:g}"
        variant = "identity" if angle == 0 else name
        for sigma in sigmas:
            noisy = "" if list(sigmas) == [0] else f"_{noisy_name(sigma)}"
            views.append((name + noisy, variant, float(sigma)))
    return views


def noise_copies(base: DomainSet, domain: str, sigmas: Sequence[float], name: str) -> DomainSet:
    """The domains "sigma_0", "sigma_4", …: one of `base`'s domains with noise of each σ ≥ 0 on the
    0..255 scale. name: of the data set. Raises UserError for an unknown domain."""
    copied = base[domain]
    copies = [_changed(base, copied, noisy_name(sigma), "", float(sigma), {}) for sigma in sigmas]
    return DomainSet.of(name, copies, base.classes, base.notes, files=base.files)


def rotated_grid(
    base: DomainSet,
    domain: str,
    angles: Sequence[float],
    sigmas: Sequence[float],
    split_seed: int,
    name: str,
) -> DomainSet:
    """The domains of `grid`: the images of one of `base`'s domains dealt out, turned by degrees
    counter-clockwise and noisy. split_seed: says who gets which images; name: of the data set.

    Raises UserError for an unknown domain, and for a split of fewer images than domains.
    """
    dealt, views = base[domain], grid(angles, sigmas)
    rows = {}
    for split, images in dealt.splits.items():
        if images.stored < len(views):
            raise UserError(
                f"{domain}/{split}: {images.stored} images cannot be dealt out to {len(views)} "
                "domains; take fewer angles or sigmas"
            )
        order = stream(split_seed, f"{domain}/{split}").permutation(images.stored)
        rows[split] = images.rows[order]
    domains = []
    for k, (own_name, variant, sigma) in enumerate(views):
        # Sorted rows keep reading from the memory map sequential; batches draw at random anyhow.
        own = {split: np.sort(shuffled[k :: len(views)]) for split, shuffled in rows.items()}
        splits = {s: replace(images, rows=own[s]) for s, images in dealt.splits.items()}
        part = replace(dealt, splits=splits)
        sums = {f"{s}_rows": array_sha256(own[s] - dealt.splits[s].first) for s in own}
        domains.append(_changed(base, part, own_name, variant, sigma, sums))
    return DomainSet.of(name, domains, base.classes, base.notes, files=base.files)


def _changed(
    base: DomainSet,
    domain: Domain,
    name: str,
    variant: str,
    sigma: float,
    sums: Mapping[str, str],
) -> Domain:
    """The base's domain under another name, with the noise, and in the variant if one is given."""
    splits = {}
    for split, images in domain.splits.items():
        variants = (variant,) if variant else images.views.variants
        views = replace(images.views, variants=variants, sigma=sigma)
        splits[split] = replace(images, views=views)
    source = domain.source
    if variant not in ("", "identity"):
        source += f", rotated by {variant.removeprefix('rotate_')}°"
    if sigma:
        source += f" + N(0, {sigma:g}²)"
    changed = replace(domain, name=name, source=source, splits=splits)
    of = {"base": base.fingerprint, "domain": domain.name, **sums}
    return replace(changed, checksums=changed.views_in_words() | of)
