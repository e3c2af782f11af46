"""From the `data` group to a `DomainSet`."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from robustmd.config.settings import Config
from robustmd.domains.class_notes import with_own_labels
from robustmd.domains.domain import DomainSet
from robustmd.errors import UserError
from robustmd.registry import DataFacts


def load_domains(config: Config, say: Callable[[str], None]) -> DomainSet:
    """The data set that the config names: found or fetched, verified, prepared, split.

    Raises:
        UserError: files missing, damaged or not the official ones; one message says what to do.
    """
    data, facts = config.data, DataFacts(config.paths.folder, say)
    domains = data.load(facts) if inspect.signature(data.load).parameters else data.load()
    if not isinstance(domains, DomainSet):
        raise UserError(
            f"data={data.name}: load returned {type(domains).__name__}; it must return a "
            "robustmd.domains.DomainSet"
        )
    if getattr(data, "labels", "shared") == "per_domain":
        domains = with_own_labels(domains, say)
    if data.sizes is not None:
        domains = domains.with_sizes(data.sizes)
    if data.validation > 0:
        domains = domains.with_validation(data.validation, config.seed)
    return domains


def domain_names(config: Config) -> tuple[str, ...]:
    """The domains of the config's data set; loads it where it must. Raises UserError."""
    names: tuple[str, ...] = config.data.names()
    return names or load_domains(config, lambda _: None).names
