"""`data=pets`: ImageNet against VGG, the paper's first experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Optional

from robustmd.config.ranges import CLASSES, IMAGE_SIDE
from robustmd.registry import DataFacts, Settings, data, key

if TYPE_CHECKING:
    from robustmd.domains.domain import DomainSet


@data("pets", order=4)
class Pets(Settings):
    """`classes`: some of the 24 shared breeds; none: all."""

    classes: list[str] = key([], CLASSES)
    size: int = key(256, IMAGE_SIDE)
    crop: Optional[int] = key(None, IMAGE_SIDE)  # noqa: UP045
    skip_unreadable: bool = False

    def __post_init__(self) -> None:
        """The order of `classes` means nothing; a crop that is left out is 224 of 256 pixels."""
        self.classes = sorted(set(self.classes))
        if self.crop is None:
            self.crop = max(1, round(self.size * 224 / 256))

    def names(self) -> tuple[str, ...]:
        return ("imagenet", "vgg")

    def load(self, facts: DataFacts) -> DomainSet:
        return self.of(("imagenet", "vgg"), facts)

    def of(self, domains: Sequence[str], facts: DataFacts) -> DomainSet:
        """These domains alone."""
        from robustmd.domains import pets  # noqa: PLC0415

        return pets.load(
            facts.folder("data"),
            facts.folder("cache"),
            domains=domains,
            classes=self.classes,
            size=self.size,
            crop=self.crop,
            skip_unreadable=self.skip_unreadable,
            say=facts.say,
        )
