"""data=pets: the 24 breeds that ImageNet and Oxford-IIIT Pet (VGG) share, the paper's first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from robustmd.domains import imagenet, oxford_pets
from robustmd.domains.breeds import Breed, chosen_breeds
from robustmd.domains.checksums import array_sha256, fingerprint
from robustmd.domains.domain import CC_BY_SA_4, Domain, DomainSet, Examples
from robustmd.domains.examples import VARIANTS, Views
from robustmd.domains.listing import Listed, Listing
from robustmd.domains.prepared_images import Prepared, notes_on_files, prepare
from robustmd.errors import UserError

Say = Callable[[str], None]
SIZE = 256  # pixels; the shorter side is resized to it and the centre taken
CROP = 224
EXPANSION = tuple(VARIANTS)  # identity, both flips, rotations by 45°, …, 315°: ×10
SOURCES = {
    imagenet.NAME: (imagenet.ORIGIN, imagenet.LICENCE),
    oxford_pets.NAME: (oxford_pets.ORIGIN, CC_BY_SA_4),
}


def load(
    data_dir: Path,
    cache_dir: Path,
    *,
    domains: Sequence[str] = (imagenet.NAME, oxford_pets.NAME),
    classes: Sequence[str] = (),
    size: int = SIZE,
    crop: int | None = CROP,
    skip_unreadable: bool = False,
    fetch: bool = True,
    say: Say = lambda line: None,
) -> DomainSet:
    """The domains "imagenet" and "vgg", in this order, as size × size RGB.

    data_dir: holds imagenet/ and oxford-iiit-pet/ (see imagenet.py, oxford_pets.py); may be
        read-only where nothing is to be fetched
    cache_dir: keeps the prepared arrays, so that every image is decoded once
    domains: those that are wanted, in whatever order; the other's files are not looked at
    classes: of breeds.py's, at least two; none: all 24. Labels follow the table's order.
    size: pixels of the stored square, ≥ 1: the shorter side is resized to it, the centre taken
    crop: side of the random (in training) or central square that a model sees; None: all of it
    skip_unreadable: leave out, with a note, what cannot be read, instead of refusing it all
    fetch: fetch Oxford-IIIT Pet where it is missing; ImageNet never is
    say: is called with a line for each thing that takes time or should be known

    VGG's training images count tenfold (`EXPANSION`), as the paper expands them; nothing is stored
    more than once. Raises UserError.
    """
    breeds = chosen_breeds(classes)
    if crop is not None and not 1 <= crop <= size:
        raise UserError(f"data.crop={crop}: must be from 1 to data.size={size}")
    names = tuple(breed.name for breed in breeds)
    listing = _listing(data_dir, domains, breeds, fetch, say)
    prepared: dict[str, Prepared] = {}
    for name, files in listing.by_domain.items():
        # A store for each domain, so that sets of one of them share it with sets of both.
        alone, of = Listing(data_dir, data_dir, files), {"classes": list(names)}
        prepared |= prepare(alone, cache_dir, size, say, f"pets-{name}", of)
    notes = [*listing.notes, *notes_on_files(listing, prepared, skip_unreadable)]
    found, checksums = [], {}
    for name, files in listing.by_domain.items():
        domain, sums = _domain(name, files, prepared[name], crop)
        _check_classes(domain, names)
        found.append(domain)
        checksums[name] = prepared[name].checksums | sums | domain.views_in_words()
    for note in notes:
        say(note)
    sha256 = fingerprint("pets", names, checksums)
    return DomainSet("pets", tuple(found), names, sha256, tuple(notes))


def _listing(
    data_dir: Path, domains: Sequence[str], breeds: Sequence[Breed], fetch: bool, say: Say
) -> Listing:
    """The files of the wanted domains."""
    files: list[Listed] = []
    notes: list[str] = []
    if imagenet.NAME in domains:  # before hours of fetching
        files, notes = imagenet.list_imagenet(data_dir, breeds)
    if oxford_pets.NAME in domains:
        oxford_pets.have_vgg(data_dir, fetch=fetch, say=say)
        of_vgg, more_notes = oxford_pets.list_vgg(data_dir, breeds)
        files, notes = [*files, *of_vgg], [*notes, *more_notes]
    return Listing(data_dir, data_dir, files, notes)


def _domain(
    name: str, files: Sequence[Listed], arrays: Prepared, crop: int | None
) -> tuple[Domain, dict[str, str]]:
    """One domain and its rows' checksums; what could not be read is in no split."""
    splits, sums = {}, {}
    for split in ("train", "test"):
        rows = np.array(
            [r for r, f in enumerate(files) if f.split == split and r not in arrays.unreadable],
            dtype=np.int64,
        )
        sums[f"{split}_rows"] = array_sha256(rows)
        expanded = name == oxford_pets.NAME and split == "train"
        views = Views(EXPANSION, crop) if expanded else Views(crop=crop)
        splits[split] = Examples(arrays.images, arrays.labels, rows, views)
    origin, licence = SOURCES[name]
    return Domain(name, splits["train"], splits["test"], source=origin, licence=licence), sums


def _check_classes(domain: Domain, names: Sequence[str]) -> None:
    """Both splits have a readable image of every class. Raises UserError."""
    for split, examples in domain.splits.items():
        lacking = set(range(len(names))) - set(np.unique(examples.targets).tolist())
        if lacking:
            raise UserError(
                f"domain {domain.name}, {split} split: no image of {names[min(lacking)]} can be "
                "read; mend one, or choose other classes with data.classes=[…]"
            )
