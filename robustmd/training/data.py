"""From the `data` group to a `DomainSet`: the one place that knows both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from robustmd import data_settings as data_sets
from robustmd import settings
from robustmd.domains.domain import DomainSet

Say = Callable[[str], None]


def load_domains(config: settings.Config, say: Say) -> DomainSet:
    """The data set that the config names: found or fetched, verified, prepared, split.

    Raises:
        UserError: files missing, damaged or not the official ones; one message says what to do.
    """
    domains = LOADERS[config.data.name](config.data, config.paths, say)
    if config.data.validation > 0:
        return domains.with_validation(config.data.validation, config.seed)
    return domains


def _digits_mini(_: data_sets.DigitsMini, paths: settings.Paths, say: Say) -> DomainSet:
    from robustmd.domains import glyphs  # noqa: PLC0415 - only the chosen source is loaded

    assert paths.cache is not None
    return glyphs.load(Path(paths.cache), say=say)


def _digits(data: data_sets.Digits, paths: settings.Paths, say: Say) -> DomainSet:
    from robustmd.domains import digits  # noqa: PLC0415

    assert paths.data is not None
    assert paths.cache is not None
    return digits.load(
        Path(paths.data), Path(paths.cache), extra=data.svhn.extra, verify=data.verify, say=say
    )


def _folder(data: data_sets.Folder, paths: settings.Paths, say: Say) -> DomainSet:
    from robustmd.domains import folder  # noqa: PLC0415

    assert paths.cache is not None
    return folder.load(
        Path(paths.cache),
        root=Path(data.root) if data.root else None,
        manifest=Path(data.manifest) if data.manifest else None,
        outside=data.outside,
        size=data.size,
        test_share=data.test_share,
        split_seed=data.split_seed,
        skip_unreadable=data.skip_unreadable,
        say=say,
    )


LOADERS: dict[str, Callable[[Any, settings.Paths, Say], DomainSet]] = {
    "digits_mini": _digits_mini,
    "digits": _digits,
    "folder": _folder,
}
