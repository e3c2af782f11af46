"""`data=folder`: a user's own domains, as folders of class folders or as a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional

from robustmd.config.paths import whole
from robustmd.config.ranges import IMAGE_SIDE, SEED, SHARE, one_of
from robustmd.registry import DataFacts, Settings, data, key

if TYPE_CHECKING:
    from robustmd.domains.domain import DomainSet


@data("folder", order=6)
class Folder(Settings):
    """Exactly one of `root` and `manifest`, made absolute."""

    root: Optional[str] = key(None, place=True)  # noqa: UP045
    manifest: Optional[str] = key(None, place=True)  # noqa: UP045
    outside: bool = False
    size: int = key(32, IMAGE_SIDE)
    test_share: float = key(0.2, SHARE)
    split_seed: int = key(0, SEED)
    skip_unreadable: bool = False
    labels: str = key("shared", one_of("shared", "per_domain"))

    def __post_init__(self) -> None:
        """A relative path means another folder elsewhere."""
        self.root = whole("data.root", self.root) if self.root else None
        self.manifest = whole("data.manifest", self.manifest) if self.manifest else None

    def load(self, facts: DataFacts) -> DomainSet:
        from robustmd.domains import folder  # noqa: PLC0415

        return folder.load(
            facts.folder("cache"),
            root=Path(self.root) if self.root else None,
            manifest=Path(self.manifest) if self.manifest else None,
            outside=self.outside,
            size=self.size,
            test_share=self.test_share,
            split_seed=self.split_seed,
            skip_unreadable=self.skip_unreadable,
            say=facts.say,
        )
