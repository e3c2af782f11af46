"""From the `data` group to a `DomainSet`: the one place that knows both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from robustmd import data_settings as data_sets
from robustmd import settings
from robustmd.domains.domain import DomainSet
from robustmd.domains.noise import noise_copies
from robustmd.domains.own_labels import with_own_labels
from robustmd.domains.rotated import rotated_grid
from robustmd.domains.tested import with_test_notes
from robustmd.errors import UserError

Say = Callable[[str], None]


def load_domains(config: settings.Config, say: Say) -> DomainSet:
    """The data set that the config names: found or fetched, verified, prepared, split.

    Raises:
        UserError: files missing, damaged or not the official ones, or one class only; one message
            says what to do.
    """
    domains = LOADERS[config.data.name](config.data, config.paths, say)
    if getattr(config.data, "labels", "shared") == "per_domain":
        domains = with_own_labels(domains, say)
    if config.data.validation > 0:
        domains = domains.with_validation(config.data.validation, config.seed)
    return with_test_notes(domains, settings.trained_domains(config, domains.names), say)


def _digits_mini(_: data_sets.DigitsMini, paths: settings.Paths, say: Say) -> DomainSet:
    from robustmd.domains import glyphs  # noqa: PLC0415 - only the chosen source is loaded

    return glyphs.load(paths.folder("cache"), say=say)


def _digits(data: data_sets.Digits, paths: settings.Paths, say: Say) -> DomainSet:
    from robustmd.domains import digits  # noqa: PLC0415

    return digits.load(
        paths.folder("data"),
        paths.folder("cache"),
        extra=data.svhn.extra,
        verify=data.verify,
        say=say,
    )


def _of_digits(
    data: data_sets.DigitsNoise | data_sets.DigitsRotated, paths: settings.Paths, say: Say
) -> DomainSet:
    """The data set that has `data.domain`, or of it that domain alone."""
    from robustmd.domains import digits, glyphs  # noqa: PLC0415

    if data.svhn.extra and data.domain != "svhn":
        raise UserError(f"data.svhn.extra=true: only data.domain=svhn has it, not {data.domain}")
    if data.domain in ("handwritten", "printed"):
        return glyphs.load(paths.folder("cache"), say=say)
    return digits.load(
        paths.folder("data"),
        paths.folder("cache"),
        names=[data.domain],
        extra=data.svhn.extra,
        verify=data.verify,
        say=say,
    )


def _digits_noise(data: data_sets.DigitsNoise, paths: settings.Paths, say: Say) -> DomainSet:
    return noise_copies(_of_digits(data, paths, say), data.domain, data.sigmas, data.name)


def _digits_rotated(data: data_sets.DigitsRotated, paths: settings.Paths, say: Say) -> DomainSet:
    base = _of_digits(data, paths, say)
    return rotated_grid(base, data.domain, data.angles, data.sigmas, data.split_seed, data.name)


def _pets(
    data: data_sets.Pets,
    paths: settings.Paths,
    say: Say,
    domains: Sequence[str] = ("imagenet", "vgg"),
) -> DomainSet:
    from robustmd.domains import pets  # noqa: PLC0415

    return pets.load(
        paths.folder("data"),
        paths.folder("cache"),
        domains=domains,
        classes=data.classes,
        size=data.size,
        crop=data.crop,
        skip_unreadable=data.skip_unreadable,
        say=say,
    )


def _folder(data: data_sets.Folder, paths: settings.Paths, say: Say) -> DomainSet:
    from robustmd.domains import folder  # noqa: PLC0415

    return folder.load(
        paths.folder("cache"),
        root=Path(data.root) if data.root else None,
        manifest=Path(data.manifest) if data.manifest else None,
        outside=data.outside,
        size=data.size,
        test_share=data.test_share,
        split_seed=data.split_seed,
        skip_unreadable=data.skip_unreadable,
        say=say,
    )


def _pets_noise(data: data_sets.PetsNoise, paths: settings.Paths, say: Say) -> DomainSet:
    return noise_copies(_pets(data, paths, say, [data.domain]), data.domain, data.sigmas, data.name)


LOADERS: dict[str, Callable[[Any, settings.Paths, Say], DomainSet]] = {
    "digits_mini": _digits_mini,
    "digits": _digits,
    "digits_noise": _digits_noise,
    "digits_rotated": _digits_rotated,
    "pets": _pets,
    "pets_noise": _pets_noise,
    "folder": _folder,
}
