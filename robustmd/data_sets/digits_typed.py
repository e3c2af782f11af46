"""`data=digits_typed`: handwritten against typed digits; ships with the package.

*handwritten* is that of `data=digits_mini`. *typed*: 3,000 + 600 digits, drawn as *printed* there
and easier to read: the ink is always lighter than the background, as in the handwritten ones, by at
least 50 of 255 on average over the channels; the centre up to 4 pixels of 64 off the middle; a
neighbour on either side with probability 0.4 each; pixel noise of σ between 2 and 20. Fonts, sizes,
turns and light are the same. Where ink may be darker or lighter, a network's loss stays where it
began for a while before it learns: here it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from robustmd.data_sets.digits_mini import DigitsMini, Drawn, Style
from robustmd.domains.domain import DomainSet
from robustmd.registry import DataFacts, Settings, data

STYLE = Style(neighbours=0.4, shift=4.0, contrast=50.0, lighter=True, noise=(2.0, 20.0))
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
