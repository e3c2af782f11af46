"""Where images come from: one module per source, every one of them returns a `DomainSet`."""

from robustmd.domains.domain import Domain, DomainSet, Examples
from robustmd.domains.examples import Views

__all__ = ["Domain", "DomainSet", "Examples", "Views"]
