"""Fetching what MNIST, SVHN and Oxford-IIIT Pet publish: torchvision knows from where, and how.

A file is fetched into a folder of its own beside its place, its md5 compared with the published
one, and then renamed: what is interrupted leaves nothing that could be taken for the file.
torchvision is imported where it is needed: it takes seconds, and only fetching needs it.
"""

from __future__ import annotations

import http.client
import shutil
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from robustmd.domains.shared_folders import make_folder
from robustmd.errors import UserError, printable
from robustmd.runs.lock import held

Say = Callable[[str], None]
TIMEOUT = 20.0  # seconds without a byte


@dataclass(frozen=True)
class Origin:
    """name: of the fetched file; urls: mirrors, tried in order; md5: of the fetched bytes."""

    name: str
    urls: tuple[str, ...]
    md5: str


class FetchError(Exception):
    """A file could not be had, in one line."""


def origin(name: str) -> Origin:
    """Where a file comes from: one of MNIST's (compressed, named without .gz), SVHN's or
    Oxford-IIIT Pet's. Raises KeyError for another."""
    from torchvision.datasets import MNIST, SVHN, OxfordIIITPet  # noqa: PLC0415

    known = {
        f.removesuffix(".gz"): ([m + f for m in MNIST.mirrors], md5) for f, md5 in MNIST.resources
    }
    known |= {file: ([url], md5) for url, file, md5 in SVHN.split_list.values()}
    known |= {url.rpartition("/")[2]: ([url], md5) for url, md5 in OxfordIIITPet._RESOURCES}
    urls, md5 = known[name]
    return Origin(urls[0].rpartition("/")[2], tuple(urls), md5)


def fetch_missing(lacking: str, names: Sequence[str], folder: Path, say: Say) -> dict[str, Path]:
    """Fetch files into `folder`: their paths, by names that `origin` knows.

    Raises UserError if one cannot be had, with the names of all that are missing, their place and
    their origin, after the words of `lacking`, as in "data=pets lacks".
    """
    found: dict[str, Path] = {}
    try:
        for name in names:
            found[name] = fetch_file(origin(name), folder, say)
    except FetchError as error:
        left = [origin(name) for name in names if name not in found]
        sites = " or ".join(url.rpartition("/")[0] + "/" for url in left[0].urls)
        raise UserError(
            f"{lacking} {', '.join(place.name for place in left)} (belongs into "
            f"{printable(folder)}, comes from {sites}); fetching failed: {error}; meanwhile "
            "data=digits_mini needs neither files nor network"
        ) from error
    return found


def fetch_file(origin: Origin, folder: Path, say: Say) -> Path:
    """Fetch a file into `folder` and return its path; one that another process fetched meanwhile
    is taken as it is.

    Raises FetchError.
    """
    target, lock = folder / origin.name, folder.resolve() / f"{origin.name}.lock"
    part = folder / f".{origin.name}.part"
    try:
        make_folder(folder)
        with held(lock, say, waiting_for=f"fetching {origin.name}"):
            if not target.exists():
                shutil.rmtree(part, ignore_errors=True)  # of one that was killed
                try:
                    _from_any_mirror(origin, part, say).replace(target)
                finally:
                    shutil.rmtree(part, ignore_errors=True)
            # Whoever waits for the lock finds the file; nobody needs the lock any more.
            with suppress(OSError):
                lock.unlink()
    except OSError as error:
        raise FetchError(
            f"{folder} cannot be written ({error.strerror or error}); make it writable and give it "
            "space, or choose another data folder with paths.data=DIR"
        ) from error
    return target


def _from_any_mirror(origin: Origin, folder: Path, say: Say) -> Path:
    """The file in `folder`, of the published bytes. Raises FetchError."""
    from torchvision.datasets.utils import download_url  # noqa: PLC0415

    folder.mkdir()
    reasons = []
    before = socket.getdefaulttimeout()
    for url in origin.urls:
        host = urlsplit(url).netloc
        say(f"fetching {origin.name} from {host}")
        try:
            socket.setdefaulttimeout(TIMEOUT)  # torchvision waits for a silent server for ever
            download_url(url, folder, origin.name, origin.md5)
        except (OSError, RuntimeError, http.client.HTTPException) as error:
            reasons.append(f"{host}: {' '.join(str(error).split()) or type(error).__name__}")
        else:
            return folder / origin.name
        finally:
            socket.setdefaulttimeout(before)
    raise FetchError(f"{origin.name} from " + ", ".join(reasons))
