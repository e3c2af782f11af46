"""What each data set can be set to: the `data` group's options, one class each.

A default here is the recorded default of its key; see settings.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from robustmd.ranges import BELOW_ONE, IMAGE_SIDE, NAMES, SEED, SHARE, setting


@dataclass
class DigitsMini:
    """`data=digits_mini`: handwritten against printed digits; ships with the package."""

    name: str = "digits_mini"
    validation: float = setting(0.0, BELOW_ONE)


@dataclass
class Svhn:
    extra: bool = False


@dataclass
class Digits:
    """`data=digits`: MNIST against SVHN, the paper's second experiment."""

    name: str = "digits"
    svhn: Svhn = field(default_factory=Svhn)
    verify: bool = True
    validation: float = setting(0.0, BELOW_ONE)


@dataclass
class Folder:
    """`data=folder`: a user's own domains; exactly one of root and manifest, made absolute."""

    name: str = "folder"
    root: Optional[str] = None  # noqa: UP045
    manifest: Optional[str] = None  # noqa: UP045
    outside: bool = False
    size: int = setting(32, IMAGE_SIDE)
    test_share: float = setting(0.2, SHARE)
    split_seed: int = setting(0, SEED)
    skip_unreadable: bool = False
    unseen: list[str] = field(default_factory=list, metadata={"allowed": NAMES})
    validation: float = setting(0.0, BELOW_ONE)

    def __post_init__(self) -> None:
        """A relative path means another folder elsewhere, so it must not be a run's identity;
        the order of `unseen` means nothing."""
        self.root = str(Path(self.root).expanduser().absolute()) if self.root else None
        self.manifest = str(Path(self.manifest).expanduser().absolute()) if self.manifest else None
        self.unseen = sorted(set(self.unseen))


DATA: Mapping[str, type] = {"digits_mini": DigitsMini, "digits": Digits, "folder": Folder}
