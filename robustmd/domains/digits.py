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
from typing import IO

import numpy as np
from PIL import Image

from robustmd.domains.domain_set import Domain, DomainSet
from robustmd.domains.store import Block, Notes, open_store, stamp_of
from robustmd.errors import UserError, first_line, printable
from robustmd.registry import Data, DataFacts, Settings, data, key
from robustmd.runs.files import hex_digest

CLASSES = tuple(str(digit) for digit in range(10))
SIDE = 32
TIMEOUT = 20.0  # seconds without a byte
TITLES = {"mnist": "MNIST", "svhn": "SVHN"}
SOURCES = {
    "mnist": "MNIST (LeCun, Cortes, Burges), 28×28 enlarged to 32×32",
    "svhn": "SVHN cropped digits (Netzer et al. 2011)",
}
LICENCES = {"mnist": "CC BY-SA 3.0", "svhn": "non-commercial use only"}
FOLDERS = {"mnist": "MNIST/raw", "svhn": "svhn"}  # below paths.data
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
        return tuple(TITLES)

    def at_hand(self, folder: Path) -> Mapping[str, bool]:
        return {TITLES[name]: not self._missing(name, folder) for name in TITLES}

    def load(self, facts: DataFacts) -> DomainSet:
        """The domains "mnist" (60,000 + 10,000) and "svhn" (73,257 + 26,032). Raises UserError."""
        return self.of(self.names(), facts)

    def of(self, domains: Sequence[str], facts: DataFacts) -> DomainSet:
        """These domains alone; the other's files are not looked at."""
        folder = facts.folder("data")
        content: object = "official"  # which needs no files once it is prepared
        if not self.verify:
            files = [path for name in domains for path in self._fetched(name, folder)]
            content = [[str(path), stamp_of(path)] for path in files]

        def build(_: Notes) -> Iterator[Block]:
            for name in domains:
                files = self._fetched(name, folder)
                if self.verify:
                    _check_md5s(name, files)
                try:
                    yield from (_mnist if name == "mnist" else _svhn)(files)
                except Exception as error:  # over damaged bytes anything
                    raise UserError(
                        f"the {TITLES[name]} files in {printable(files[0].parent)} cannot be used "
                        f"({printable(first_line(error))[:200]}); delete them to have them fetched "
                        "again"
                    ) from error

        settings = [list(domains), self.svhn.extra, self.verify]
        cache = facts.folder("cache")
        store = open_store(cache, "digits", SIDE, settings, content, build, facts.say)
        loaded = []
        for name in domains:
            source = SOURCES[name] + ", train + extra" * (name == "svhn" and self.svhn.extra)
            splits, sums = store.splits(name)
            loaded.append(Domain(name, splits, source, LICENCES[name], sums))
        note = "data.verify=false: the files are taken as they are, official or not"
        return DomainSet.of("digits", loaded, CLASSES, [] if self.verify else [note], facts.say)

    def _paths(self, name: str, folder: Path) -> list[Path]:
        """The domain's files; where there is a compressed one alone, that one."""
        wanted = [file for file in MD5S[name] if self.svhn.extra or not file.startswith("extra")]
        plain = [folder / FOLDERS[name] / file for file in wanted]
        packed = [path.with_name(f"{path.name}.gz") for path in plain]
        pairs = zip(plain, packed, strict=True)
        return [two if two.is_file() and not one.is_file() else one for one, two in pairs]

    def _missing(self, name: str, folder: Path) -> list[Path]:
        return [path for path in self._paths(name, folder) if not path.is_file()]

    def _fetched(self, name: str, folder: Path) -> list[Path]:
        """Its files, once torchvision has fetched what was missing. Raises UserError."""
        if missing := self._missing(name, folder):
            from torchvision.datasets import MNIST, SVHN  # noqa: PLC0415 - takes seconds

            with fetching("data=digits", missing):
                if name == "mnist":
                    MNIST(folder, download=True)
                for path in missing if name == "svhn" else ():
                    SVHN(path.parent, path.name.partition("_")[0], download=True)
        return self._paths(name, folder)


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _check_md5s(name: str, files: Sequence[Path]) -> None:
    for path, md5 in zip(files, MD5S[name].values(), strict=False):  # the extra digits come last
        try:
            with _opened(path) as stream:
                own = hex_digest(stream, hashlib.md5(usedforsecurity=False))  # type: ignore[arg-type]
        except (OSError, EOFError):
            own = "none, it cannot be read"
        if own != md5:
            raise UserError(
                f"{printable(path)} is not the published file of {TITLES[name]} (md5 {own}, not "
                f"{md5}); delete it to have it fetched, or use all files as they are with "
                "data.verify=false"
            )


def _mnist(files: Sequence[Path]) -> Iterator[Block]:
    """From files in IDX format: a header of 4 bytes and 4 for each dimension, then the values."""
    for split, (images, labels) in (("train", files[:2]), ("test", files[2:])):
        with _opened(images) as images_file, _opened(labels) as labels_file:
            pixels = np.frombuffer(images_file.read(), np.uint8, offset=16)
            digits = np.frombuffer(labels_file.read(), np.uint8, offset=8)
        _check_labels(digits)
        yield f"mnist_{split}", digits, map(_enlarged, pixels.reshape(len(digits), 28, 28))


def _svhn(files: Sequence[Path]) -> Iterator[Block]:
    from scipy.io import loadmat  # noqa: PLC0415 - not needed once it is prepared

    train, test, *extra = (loadmat(path, variable_names=("X", "y")) for path in files)
    for split, parts in (("train", [train, *extra]), ("test", [test])):
        labels = np.concatenate([part["y"][:, 0] for part in parts])
        images = [np.moveaxis(part["X"], 3, 0) for part in parts]
        shapes = {array.shape[1:] for array in images}
        if sum(map(len, images)) != len(labels) or shapes != {(SIDE, SIDE, 3)}:
            raise ValueError(f"there are {len(labels)} labels, and images of {shapes}")
        _check_labels(labels - 1)
        yield f"svhn_{split}", labels % 10, chain(*images)


def _check_labels(labels: np.ndarray) -> None:
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
