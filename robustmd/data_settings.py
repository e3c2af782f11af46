"""What each data set can be set to: the `data` group's options, one class each.

A default here is the recorded default of its key; see settings.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional
from unicodedata import normalize

from robustmd.errors import UserError
from robustmd.paths import whole
from robustmd.ranges import (
    ANGLES,
    BELOW_ONE,
    CLASSES,
    IMAGE_SIDE,
    NAMES,
    SEED,
    SHARE,
    SIGMAS,
    SOME_SIGMAS,
    one_of,
    setting,
)


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
class DigitsNoise:
    """`data=digits_noise`: K copies of one domain of digits, with N(0, σ_k²) on the pixels."""

    name: str = "digits_noise"
    domain: str = setting("mnist", one_of("mnist", "svhn", "handwritten", "printed"))
    sigmas: list[float] = field(
        default_factory=lambda: [0.0, 4.0, 8.0, 12.0], metadata={"allowed": SIGMAS}
    )
    svhn: Svhn = field(default_factory=Svhn)
    verify: bool = True
    validation: float = setting(0.0, BELOW_ONE)


@dataclass
class DigitsRotated:
    """`data=digits_rotated`: one domain of digits dealt out to angles × σ, K of them, K ≥ 2."""

    name: str = "digits_rotated"
    domain: str = setting("mnist", one_of("mnist", "svhn", "handwritten", "printed"))
    angles: list[float] = field(
        default_factory=lambda: [0.0, 15.0, 30.0, 45.0, 60.0, 75.0], metadata={"allowed": ANGLES}
    )
    sigmas: list[float] = field(default_factory=lambda: [0.0], metadata={"allowed": SOME_SIGMAS})
    split_seed: int = setting(0, SEED)
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
    labels: str = setting("shared", one_of("shared", "per_domain"))
    validation: float = setting(0.0, BELOW_ONE)

    def __post_init__(self) -> None:
        """A relative path means another folder elsewhere; the order of `unseen` means nothing."""
        self.root = whole("data.root", self.root) if self.root else None
        self.manifest = whole("data.manifest", self.manifest) if self.manifest else None
        self.unseen = sorted({normalize("NFC", name) for name in self.unseen})


@dataclass
class Pets:
    """`data=pets`: ImageNet against VGG, the paper's first experiment; 24 classes or some."""

    name: str = "pets"
    classes: list[str] = field(default_factory=list, metadata={"allowed": CLASSES})
    size: int = setting(256, IMAGE_SIDE)
    crop: Optional[int] = setting(None, IMAGE_SIDE)  # noqa: UP045
    skip_unreadable: bool = False
    validation: float = setting(0.0, BELOW_ONE)

    def __post_init__(self) -> None:
        """The order of `classes` means nothing; a crop that is left out is 224 of 256 pixels."""
        self.classes = sorted(set(self.classes))
        if self.crop is None:
            self.crop = max(1, round(self.size * 224 / 256))


@dataclass
class PetsNoise(Pets):
    """`data=pets_noise`: K copies of one domain of pets, with N(0, σ_k²) on the pixels."""

    name: str = "pets_noise"
    domain: str = setting("imagenet", one_of("imagenet", "vgg"))
    sigmas: list[float] = field(
        default_factory=lambda: [0.0, 4.0, 8.0, 12.0], metadata={"allowed": SIGMAS}
    )


DATA_PLACES = ("root", "manifest")  # where the data lies, which is not what they are

DATA: Mapping[str, type] = {
    "digits_mini": DigitsMini,
    "digits": Digits,
    "digits_noise": DigitsNoise,
    "digits_rotated": DigitsRotated,
    "pets": Pets,
    "pets_noise": PetsNoise,
    "folder": Folder,
}


def check_data(data: Any) -> None:
    """What depends on two keys of one data set.

    Raises:
        UserError: a grid of one domain.
    """
    if isinstance(data, DigitsRotated) and len(data.angles) * len(data.sigmas) < 2:
        raise UserError(
            f"data.angles={data.angles}: with data.sigmas={data.sigmas} they make one domain; "
            "a mixture needs two, as data.angles=[0,15]"
        )
