"""Where images come from: one module per source, every one of them returns a `DomainSet`."""

from robustmd.domains.domain_set import Domain, DomainSet, Split, Views

__all__ = ["Domain", "DomainSet", "Split", "Views"]
