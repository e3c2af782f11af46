"""`data=digits_typed`: handwritten against typed digits; ships with the package.

*handwritten* is that of `data=digits_mini`. *typed*: 3,000 + 600 digits, each one alone as a
typewriter leaves it, drawn as digits_mini's *printed* is and easier to read: no neighbours, the
centre up to 3 pixels of 64 off the middle, turned by up to 10 degrees, ink and background at least
60 of 255 apart, pixel noise of σ between 2 and 10. Fonts, sizes, colours and light are the same.
A small network learns each of the two domains alone within seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from robustmd.data_sets.digits_mini import DigitsMini, Drawn, Style
from robustmd.domains.domain import DomainSet
from robustmd.registry import DataFacts, Settings, data

STYLE = Style(neighbours=0.0, shift=3.0, turn=10.0, contrast=60.0, noise=(2.0, 10.0))
TYPED = Drawn("digits_typed", "typed", {"train": 3_000, "test": 600}, STYLE)


@data("digits_typed", order=0.5)
class DigitsTyped(Settings):
    """Handwritten against typed digits; ships with the package."""

    def names(self) -> tuple[str, ...]:
        return tuple(TYPED.sources)

    def at_hand(self, folder: Path) -> tuple[str, int, Mapping[str, bool]]:
        return DigitsMini().at_hand(folder)

    def load(self, facts: DataFacts) -> DomainSet:
        """The domains "handwritten" (1,400 + 397) and "typed" (3,000 + 600); see `Drawn`."""
        return TYPED.load(facts)
