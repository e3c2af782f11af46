"""What a run keeps of its data beside the numbers: warnings of duplicates, licences, examples."""

from __future__ import annotations

import io
from pathlib import Path

from robustmd.domains.domain import EMBEDDABLE, DomainSet
from robustmd.domains.duplicates import (
    duplicate_warnings,
    duplicates,
    image_count,
    known_duplicates,
)
from robustmd.domains.sheet import draw_sheet, evenly

MANY = 1_000_000  # images, above which a run does not look for duplicates itself: seconds
PICTURES, SIDE = 40, 48  # of examples.png, which stays below 150 kB but for noise
DOMAINS = 12


def data_warnings(domains: DomainSet, cache: Path) -> list[str]:
    """Images that are in two splits or two domains, a line each.

    Looked for once and kept in `cache`; among more than a million images only what `robustmd data`
    has found before is said.
    """
    few = image_count(domains) <= MANY
    found = duplicates(domains, cache) if few else known_duplicates(domains, cache)
    return duplicate_warnings(found or ())


def licences_of(domains: DomainSet) -> dict[str, str]:
    """Domain → its licence, "" where none is known."""
    return {domain.name: domain.licence for domain in domains}


def example_sheet(domains: DomainSet) -> bytes | None:
    """A PNG with examples of the domains whose licence lets others see them; None without any.

    The same for all runs on the data.
    """
    shown = [domain.name for domain in domains if domain.licence in EMBEDDABLE]
    if not shown:
        return None
    stream = io.BytesIO()
    draw_sheet(domains, stream, only=evenly(shown, DOMAINS), most=PICTURES, side=SIDE)
    return stream.getvalue()
