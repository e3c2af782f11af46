"""The data sets, one file each: their settings, and how they are loaded.

Every module here is imported, so that a new file is a new data set.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from robustmd.errors import UserError
from robustmd.registry import DataFacts

if TYPE_CHECKING:
    from robustmd.domains.domain import DomainSet
    from robustmd.settings import Config

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def load_domains(config: Config, say: Callable[[str], None]) -> DomainSet:
    """The data set that the config names: found or fetched, verified, prepared, split.

    Raises:
        UserError: files missing, damaged or not the official ones, or one class only; one message
            says what to do.
    """
    from robustmd.domains import class_notes  # noqa: PLC0415 - settings are checked without
    from robustmd.domains.domain import DomainSet  # noqa: PLC0415
    from robustmd.settings import trained_domains  # noqa: PLC0415

    data, facts = config.data, DataFacts(config.paths.folder, say)
    domains = data.load(facts) if inspect.signature(data.load).parameters else data.load()
    if not isinstance(domains, DomainSet):
        raise UserError(
            f"data={data.name}: load returned {type(domains).__name__}; it must return a "
            "robustmd.domains.DomainSet"
        )
    if getattr(data, "labels", "shared") == "per_domain":
        domains = class_notes.with_own_labels(domains, say)
    if data.validation > 0:
        domains = domains.with_validation(data.validation, config.seed)
    return class_notes.with_test_notes(domains, trained_domains(config, domains.names), say)
