"""`data=digits`: MNIST against SVHN, the paper's second experiment, as 32×32 RGB.

torchvision finds, fetches and reads them. MNIST is enlarged from 28×28 by Pillow's bilinear resize
and repeated to three channels.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from robustmd.domains_new.domain_set import Domain, DomainSet, Split
from robustmd.domains_new.folder import stamp_of
from robustmd.domains_new.store import Images, Notes, open_store
from robustmd.errors import UserError, first_line, printable
from robustmd.registry import DataFacts, Settings, data, key

BYTES = 257_910_900  # MNIST, and SVHN without its extra digits
CLASSES = tuple(str(digit) for digit in range(10))
SIDE = 32
BLOCK = 1024  # images
TIMEOUT = 20.0  # seconds without a byte
CC_BY_SA_3, NON_COMMERCIAL = "CC BY-SA 3.0", "non-commercial use only"
TITLES = {"mnist": "MNIST", "svhn": "SVHN"}
LICENCES = {"mnist": CC_BY_SA_3, "svhn": NON_COMMERCIAL}
SVHN_FOLDERS = ("svhn", "SVHN", ".")  # below paths.data; fetched files go to the first
MNIST = {  # md5 of the decompressed files, of which torchvision has none
    "MNIST/raw/train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "MNIST/raw/train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "MNIST/raw/t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "MNIST/raw/t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
SVHN = {  # torchvision's, which takes seconds to import
    "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
    "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
}


@dataclass
class Svhn:
    """The keys of SVHN."""

    extra: bool = key(False, help="train on its extra part too, as in the paper: 604,388 digits")


@data("digits", order=1)
class Digits(Settings):
    """MNIST against SVHN."""

    svhn: Svhn = field(default_factory=Svhn)
    verify: bool = key(True, help="false: take files that are not the official bytes, with a note")

    def names(self) -> tuple[str, ...]:
        return ("mnist", "svhn")

    def at_hand(self, folder: Path) -> tuple[str, int, Mapping[str, bool]]:
        there = {
            title: all(path.is_file() for path in self.files([name], folder))
            for name, title in TITLES.items()
        }
        return "; ".join(f"{TITLES[name]} {LICENCES[name]}" for name in TITLES), BYTES, there

    def load(self, facts: DataFacts) -> DomainSet:
        """The domains "mnist" (60,000 + 10,000) and "svhn" (73,257 + 26,032). Raises UserError."""
        return self.of(self.names(), facts)

    def of(self, domains: Sequence[str], facts: DataFacts) -> DomainSet:
        """These domains alone; the other's files are not looked at."""
        folder = facts.folder("data")
        if self.verify:  # what official files are prepared to is known without them
            content: object = "official"
        else:
            self._fetch(domains, folder)
            content = [[str(path), stamp_of(path)] for path in self.files(domains, folder)]

        def build(notes: Notes) -> Iterator[Images]:
            self._fetch(domains, folder)
            for number, name in enumerate(domains):
                strangers = self._strangers(name, folder)
                notes.extend((number, stranger) for stranger in strangers)
                yield from (_mnist if name == "mnist" else self._svhn)(folder)

        settings = [list(domains), self.svhn.extra, self.verify]
        blocks = [f"{name}_{split}" for name in domains for split in ("train", "test")]
        cache = facts.folder("cache")
        store = open_store(cache, "digits", settings, content, blocks, build, facts.say)
        found, notes = [], []
        for number, name in enumerate(domains):
            splits, sums = {}, {}
            for split in ("train", "test"):
                block = store.blocks[f"{name}_{split}"]
                splits[split] = Split(store.images, store.labels, block.rows(), first=block.first)
                sums |= {f"{split}_images": block.images, f"{split}_labels": block.labels}
            if strangers := [text for of, text in store.notes if of == number]:
                names = ", ".join(strangers)
                notes.append(
                    f"{TITLES[name]} is read from unofficial files (data.verify=false): {names}"
                )
            verified = "not official" if strangers else "official"
            about = self._origin(name), LICENCES[name], verified, sums
            found.append(Domain(name, splits, *about))
        return DomainSet.of("digits", found, CLASSES, notes, facts.say)

    def _origin(self, name: str) -> str:
        if name == "mnist":
            return "MNIST (LeCun, Cortes, Burges), 28×28 enlarged to 32×32"
        extra = ", train + extra" if self.svhn.extra else ""
        return f"SVHN cropped digits (Netzer et al. 2011){extra}"

    def files(self, domains: Sequence[str], folder: Path) -> dict[Path, str]:
        """The files of these domains, where they are or belong, and their published md5s."""
        known = {folder / name: md5 for name, md5 in MNIST.items() if "mnist" in domains}
        if "svhn" in domains:
            root = _svhn_folder(folder)
            used = [n for n in SVHN if self.svhn.extra or not n.startswith("extra")]
            known |= {root / name: SVHN[name] for name in used}
        return known

    def _strangers(self, name: str, folder: Path) -> list[str]:
        """The names of the domain's files that are not the published ones. Raises UserError where
        those are refused."""
        from torchvision.datasets.utils import check_integrity  # noqa: PLC0415 - takes seconds

        files = self.files([name], folder)
        strangers = [path for path, md5 in files.items() if not check_integrity(path, md5)]
        if strangers and self.verify:
            raise UserError(
                f"{len(strangers)} of the {len(files)} {TITLES[name]} files are not the published "
                f"ones: {printable(strangers[0])} has not the md5 {files[strangers[0]]}; delete "
                "what is wrong to have it fetched, or use all as it is with data.verify=false"
            )
        return [path.name for path in strangers]

    def _fetch(self, domains: Sequence[str], folder: Path) -> None:
        """Have torchvision fetch what is missing. Raises UserError."""
        missing = [path for path in self.files(domains, folder) if not path.is_file()]
        if not missing:
            return
        from torchvision import datasets  # noqa: PLC0415 - takes seconds

        with fetching("data=digits", missing):
            if any(path.parent.name == "raw" for path in missing):
                datasets.MNIST(folder, download=True)
            for path in missing:
                if path.suffix == ".mat":
                    datasets.SVHN(path.parent, path.name.partition("_")[0], download=True)

    def _svhn(self, folder: Path) -> Iterator[Images]:
        from torchvision import datasets  # noqa: PLC0415 - takes seconds

        class AnySvhn(datasets.SVHN):
            def _check_integrity(self) -> bool:
                return True  # `_strangers` has looked

        root = _svhn_folder(folder)
        parts = {"train": ["train", "extra"] if self.svhn.extra else ["train"], "test": ["test"]}
        for names in parts.values():
            read = [_read(root / f"{name}_32x32.mat", AnySvhn, root, name) for name in names]
            labels = np.concatenate([part.labels for part in read])
            if not np.isin(labels, range(10)).all() or read[0].data.shape[1:] != (3, SIDE, SIDE):
                raise UserError(f"{printable(root)}: its SVHN files hold no digits of 32×32")
            images = (np.moveaxis(block, 1, 3) for part in read for block in _blocks(part.data))
            yield Images(labels, images)


def _svhn_folder(folder: Path) -> Path:
    there = (folder / name for name in SVHN_FOLDERS)
    return next((path for path in there if any(path.glob("*_32x32.mat"))), folder / "svhn")


def _mnist(folder: Path) -> Iterator[Images]:
    from torchvision import datasets  # noqa: PLC0415 - takes seconds

    for is_train in (True, False):
        found = _read(folder / "MNIST" / "raw", datasets.MNIST, folder, is_train)
        images, labels = found.data.numpy(), found.targets.numpy()
        if images.shape != (len(labels), 28, 28) or labels.max() > 9:
            shape = "×".join(map(str, images.shape))
            raise UserError(
                f"{printable(folder / 'MNIST')}: images {shape} and {len(labels)} labels up to "
                f"{labels.max()} are not N×28×28 and N up to 9"
            )
        yield Images(labels, map(_enlarged, _blocks(images)))


def _read(path: Path, dataset: type, *arguments: object) -> Any:
    """torchvision's data set. Raises UserError for files that it cannot read."""
    try:
        return dataset(*arguments)
    except Exception as error:  # over damaged bytes anything
        reason = f"{type(error).__name__}: {first_line(error)}"[:200]
        raise UserError(
            f"{printable(path)} cannot be used ({printable(reason)}); delete it to have it fetched "
            "again, or put the original in its place"
        ) from error


def _enlarged(images: np.ndarray) -> np.ndarray:
    """uint8 [n, 32, 32, 3] from gray images, uint8 [n, 28, 28]."""
    pictures = (Image.fromarray(image) for image in images)
    gray = [np.asarray(one.resize((SIDE, SIDE), Image.Resampling.BILINEAR)) for one in pictures]
    return np.repeat(np.stack(gray)[..., None], 3, axis=3)


def _blocks(images: np.ndarray) -> list[np.ndarray]:
    """Views of some of the images at a time."""
    return np.array_split(images, range(BLOCK, len(images), BLOCK))


@contextmanager
def fetching(whose: str, missing: Sequence[Path]) -> Iterator[None]:
    """Within it torchvision fetches; what keeps it from that is a UserError that names the files
    and their folder."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)  # torchvision waits for a silent server for ever
    try:
        yield
    except (OSError, RuntimeError, http.client.HTTPException) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(
            f"{whose} lacks {', '.join(path.name for path in missing)} (belongs into "
            f"{printable(missing[0].parent)}); fetching failed: {printable(reason)}; meanwhile "
            "data=digits_mini needs neither files nor network"
        ) from error
    finally:
        socket.setdefaulttimeout(before)
