"""`data=digits`: MNIST against SVHN, the paper's second experiment, as 32×32 RGB.

torchvision fetches both. MNIST is enlarged from 28×28 by Pillow's bilinear resize and repeated to
three channels.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from robustmd.domains.domain_set import Domain, DomainSet
from robustmd.domains.store import Block, Notes, open_store, stamp_of
from robustmd.errors import UserError, first_line, printable
from robustmd.registry import Data, DataFacts, Settings, data, key
from robustmd.runs.files import hex_digest

BYTES = 257_910_900  # MNIST, and SVHN without its extra digits
CLASSES = tuple(str(digit) for digit in range(10))
SIDE = 32
TIMEOUT = 20.0  # seconds without a byte
TITLES = {"mnist": "MNIST", "svhn": "SVHN"}
SOURCES = {
    "mnist": "MNIST (LeCun, Cortes, Burges), 28×28 enlarged to 32×32",
    "svhn": "SVHN cropped digits (Netzer et al. 2011)",
}
LICENCES = {"mnist": "CC BY-SA 3.0", "svhn": "non-commercial use only"}
FOLDERS = {"mnist": ("MNIST/raw",), "svhn": ("svhn", "SVHN", ".")}  # fetched ones go to the first
MD5S = {
    "mnist": {  # of the decompressed files, of which torchvision has none
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    },
    "svhn": {  # torchvision's, which takes seconds to import
        "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
        "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
        "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
    },
}


class Svhn(Settings):
    """The keys of SVHN."""

    extra: bool = key(False, help="train on its extra part too, as in the paper: 604,388 digits")


@data("digits", order=1)
class Digits(Data):
    """MNIST against SVHN."""

    svhn: Svhn = Svhn()
    verify: bool = key(True, help="false: take files that are not the official bytes, with a note")

    def names(self) -> tuple[str, ...]:
        return ("mnist", "svhn")

    def at_hand(self, folder: Path) -> tuple[str, int, Mapping[str, bool]]:
        present = {TITLES[name]: None not in self._files(name, folder).values() for name in TITLES}
        return "; ".join(f"{TITLES[name]} {LICENCES[name]}" for name in TITLES), BYTES, present

    def load(self, facts: DataFacts) -> DomainSet:
        """The domains "mnist" (60,000 + 10,000) and "svhn" (73,257 + 26,032). Raises UserError."""
        return self.of(self.names(), facts)

    def of(self, domains: Sequence[str], facts: DataFacts) -> DomainSet:
        """These domains alone; the other's files are not looked at."""
        folder = facts.folder("data")
        content: object = "official"  # which needs no files once it is prepared
        if not self.verify:
            files = [path for name in domains for path in self._fetched(name, folder).values()]
            content = [[str(path), stamp_of(path)] for path in files]

        def build(notes: Notes) -> Iterator[Block]:
            for number, name in enumerate(domains):
                files = self._fetched(name, folder)
                strangers = [file for file in files if _md5(files[file]) != MD5S[name][file]]
                if strangers and self.verify:
                    raise UserError(
                        f"{len(strangers)} of the {len(files)} {TITLES[name]} files are not the "
                        f"published ones: {printable(files[strangers[0]])} has content of another "
                        f"md5 than {MD5S[name][strangers[0]]}; delete what is wrong to have it "
                        "fetched, or use all as it is with data.verify=false"
                    )
                notes += [(number, file) for file in strangers]
                try:
                    yield from (_mnist if name == "mnist" else _svhn)(files)
                except Exception as error:  # over damaged bytes anything
                    place = printable(next(iter(files.values())).parent)
                    raise UserError(
                        f"the {TITLES[name]} files in {place} cannot be used "
                        f"({printable(first_line(error))[:200]}); delete them to have them fetched "
                        "again"
                    ) from error

        settings = [list(domains), self.svhn.extra, self.verify]
        cache = facts.folder("cache")
        store = open_store(cache, "digits", SIDE, settings, content, build, facts.say)
        loaded, notes = [], []
        for number, name in enumerate(domains):
            strangers = ", ".join(file for of, file in store.notes if of == number)
            if strangers:
                words = f"{TITLES[name]} is read from unofficial files (data.verify=false)"
                notes.append(f"{words}: {strangers}")
            source = SOURCES[name] + ", train + extra" * (name == "svhn" and self.svhn.extra)
            verified = "not official" if strangers else "official"
            splits, sums = store.splits(name)
            loaded.append(Domain(name, splits, source, LICENCES[name], verified, sums))
        return DomainSet.of("digits", loaded, CLASSES, notes, facts.say)

    def _files(self, name: str, folder: Path) -> dict[str, Path | None]:
        """The domain's files by their names, perhaps compressed; None where one is missing."""
        wanted = [file for file in MD5S[name] if self.svhn.extra or not file.startswith("extra")]
        places = [folder / place for place in FOLDERS[name]]
        paths = {
            file: [place / f"{file}{suffix}" for place in places for suffix in ("", ".gz")]
            for file in wanted
        }
        return {file: next(filter(Path.is_file, tries), None) for file, tries in paths.items()}

    def _fetched(self, name: str, folder: Path) -> dict[str, Path]:
        """The same, once torchvision has fetched what was missing. Raises UserError."""
        place = folder / FOLDERS[name][0]
        missing = [place / file for file, path in self._files(name, folder).items() if path is None]
        if missing:
            from torchvision.datasets import MNIST, SVHN  # noqa: PLC0415 - takes seconds

            with fetching("data=digits", missing):
                if name == "mnist":
                    MNIST(folder, download=True)
                for path in missing if name == "svhn" else ():
                    SVHN(place, path.name.partition("_")[0], download=True)
        return {file: path for file, path in self._files(name, folder).items() if path is not None}


def _md5(path: Path) -> str:
    """Of a file's content, decompressed; of one that cannot be read what no file has."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return hex_digest(stream, hashlib.md5(usedforsecurity=False))  # type: ignore[arg-type]
    except (OSError, EOFError):
        return "unreadable"


def _mnist(files: Mapping[str, Path]) -> Iterator[Block]:
    from torchvision.datasets import mnist, utils  # noqa: PLC0415 - takes seconds

    with TemporaryDirectory() as scratch:
        plain = {
            file: utils.extract_archive(path, scratch) if path.suffix == ".gz" else path
            for file, path in files.items()
        }
        for split, stem in (("train", "train"), ("test", "t10k")):
            images = mnist.read_image_file(str(plain[f"{stem}-images-idx3-ubyte"])).numpy()
            labels = mnist.read_label_file(str(plain[f"{stem}-labels-idx1-ubyte"])).numpy()
            _check(images, labels, (28, 28))
            yield f"mnist_{split}", labels, map(_enlarged, images)


def _svhn(files: Mapping[str, Path]) -> Iterator[Block]:
    from scipy.io import loadmat  # noqa: PLC0415 - not needed once it is prepared

    for split, parts in (("train", ("train", "extra")), ("test", ("test",))):
        names = [name for part in parts if (name := f"{part}_32x32.mat") in files]
        read = [loadmat(files[name], variable_names=("X", "y")) for name in names]
        labels = np.concatenate([arrays["y"][:, 0].astype(np.int64) % 10 for arrays in read])
        images = [np.moveaxis(arrays["X"], 3, 0) for arrays in read]
        for array, arrays in zip(images, read, strict=True):
            _check(array, arrays["y"][:, 0] - 1, (SIDE, SIDE, 3))
        yield f"svhn_{split}", labels, chain(*images)


def _check(images: np.ndarray, labels: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raises ValueError for what are no digits of that shape."""
    if images.dtype != np.uint8 or images.shape != (len(labels), *shape):
        raise ValueError(f"images are {images.dtype} {images.shape}, labels {labels.shape}")
    if not np.isin(labels, range(10)).all():
        raise ValueError("labels are not those of ten digits")


def _enlarged(image: np.ndarray) -> np.ndarray:
    """uint8 [32, 32, 3] from a gray image, uint8 [28, 28]."""
    gray = Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.repeat(np.asarray(gray)[..., None], 3, axis=2)


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
