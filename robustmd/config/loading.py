"""From the `data` group to a `DomainSet`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

from robustmd.config.settings import Config
from robustmd.errors import UserError
from robustmd.registry import DataFacts

if TYPE_CHECKING:
    from robustmd.domains.domain import DomainSet


def load_domains(config: Config, say: Callable[[str], None]) -> DomainSet:
    """The data set that the config names: found or fetched, verified, prepared, split.

    Raises:
        UserError: files missing, damaged or not the official ones; one message says what to do.
    """
    from robustmd.domains import class_notes  # noqa: PLC0415 - torch takes seconds
    from robustmd.domains.domain import DomainSet  # noqa: PLC0415

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
    return domains


def domain_names(config: Config) -> tuple[str, ...]:
    """The domains of the config's data set; loads it where it must. Raises UserError."""
    names: tuple[str, ...] = config.data.names()
    return names or load_domains(config, lambda _: None).names
