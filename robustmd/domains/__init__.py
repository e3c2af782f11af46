"""Where images come from: one module per source, every one of them returns a `DomainSet`."""

from robustmd.domains.domain import Domain, DomainSet, Examples

__all__ = ["Domain", "DomainSet", "Examples"]
