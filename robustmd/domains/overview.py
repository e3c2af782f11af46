"""What is at hand of a known data set, without reading any of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from robustmd.data_sets import imagenet, mnist, oxford_pets, svhn
from robustmd.domains.domain import CC_BY_4, CC_BY_SA_4, FONTS

DIGITS_BYTES = 257_910_900  # MNIST, and SVHN without its extra digits
PETS_BYTES = 811_092_049  # Oxford-IIIT Pet; ImageNet is not fetched


@dataclass(frozen=True)
class Entry:
    """licence: one line; size: bytes of what is fetched, 0 for nothing; state: whether it is there,
    in a few words."""

    licence: str
    size: int
    state: str


def entry(name: str, data_dir: Path) -> Entry | None:
    """Of the data set of that name, as it lies below `data_dir`; None for one that is made of
    another or of a user's own files. Raises UserError for a folder that cannot be read."""
    look = _LOOK.get(name)
    return look(data_dir) if look else None


def _digits_mini(_: Path) -> Entry:
    return Entry(f"{CC_BY_4}; {FONTS}", 0, "in the package")


def _digits(data_dir: Path) -> Entry:
    sources = (mnist.source(), svhn.source(extra=False, verify=True))
    there = {s.title: len(s.found(data_dir)) == len(s.md5s) for s in sources}
    licence = "; ".join(f"{s.title} {s.licence}" for s in sources)
    return Entry(licence, DIGITS_BYTES, _state(there))


def _pets(data_dir: Path) -> Entry:
    there = {
        "ImageNet": any((data_dir / name / "train").is_dir() for name in imagenet.FOLDERS),
        "VGG": (data_dir / oxford_pets.FOLDER / "images").is_dir(),
    }
    return Entry(f"{imagenet.LICENCE}; VGG {CC_BY_SA_4}", PETS_BYTES, _state(there))


def _state(there: Mapping[str, bool]) -> str:
    """As in "MNIST there, SVHN missing"."""
    return ", ".join(
        f"{title} {'there' if is_there else 'missing'}" for title, is_there in there.items()
    )


_LOOK: Mapping[str, Callable[[Path], Entry]] = {
    "digits_mini": _digits_mini,
    "digits": _digits,
    "pets": _pets,
}
