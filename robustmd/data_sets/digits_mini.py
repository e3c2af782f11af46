"""`data=digits_mini`: handwritten against printed digits; ships with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustmd.registry import DataFacts, Settings, data

if TYPE_CHECKING:
    from robustmd.domains.domain import DomainSet


@data("digits_mini", order=0)
class DigitsMini(Settings):
    """It has no keys of its own."""

    def names(self) -> tuple[str, ...]:
        return ("handwritten", "printed")

    def load(self, facts: DataFacts) -> DomainSet:
        from robustmd.domains import digits_mini  # noqa: PLC0415 - only the chosen source is loaded

        return digits_mini.load(facts.folder("cache"), say=facts.say)
