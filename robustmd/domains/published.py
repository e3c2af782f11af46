"""A domain of published files: found below paths.data, fetched where they are missing, checked by
their md5s, and prepared once.

torchvision knows from where MNIST, SVHN and Oxford-IIIT Pet come, and fetches them; it is imported
where it is needed, since it takes seconds. A file is fetched into a folder of its own beside its
place, its md5 compared with the published one, and then renamed: what is interrupted leaves nothing
that could be taken for the file.
"""

from __future__ import annotations

import http.client
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

from robustmd.domains.arrays import ArrayWriter, make_folder
from robustmd.domains.domain import Domain
from robustmd.domains.store import Recipe, Store, find_store, open_store
from robustmd.errors import Say, UserError, printable, readable
from robustmd.registry import DataFacts
from robustmd.runs.lock import held

TIMEOUT = 20.0  # seconds without a byte


@dataclass(frozen=True)
class Published:
    """Where a domain comes from.

    name, title: the domain's, and the data set's own
    md5s: of the files' content, by name; a file that is compressed is called NAME.gz
    folders: where the files are looked for, below paths.data; fetched ones go to the first
    build: writes {train,test}_{images,labels} from the files' paths, by name; raises UserError
    origin, licence: one line each, for people
    """

    name: str
    title: str
    md5s: Mapping[str, str]
    folders: tuple[str, ...]
    build: Callable[[Mapping[str, Path], ArrayWriter], None]
    origin: str
    licence: str

    def found(self, data_dir: Path) -> dict[str, Path]:
        """The files that are there. Raises UserError for a folder that cannot be read."""
        found: dict[str, Path] = {}
        for name, folder, suffix in product(self.md5s, self.folders, ("", ".gz")):
            path = data_dir / folder / f"{name}{suffix}"
            with readable(path):
                if name not in found and path.is_file():
                    found[name] = path
        return found

    def load(self, facts: DataFacts, verify: bool) -> tuple[Domain, list[str]]:
        """The domain, and a note if not all files are the published ones.

        verify: refuse such files. Raises UserError if files are missing and cannot be fetched, are
        refused or cannot be read, and if the cache cannot be written.
        """
        store = self._store(facts, verify)
        notes = []
        if strangers := self._strangers(store.md5s):
            names = ", ".join(strangers)
            notes = [f"{self.title} is read from unofficial files (data.verify=false): {names}"]
        train, test = store.examples("train"), store.examples("test")
        verified = "not official" if strangers else "official"
        about = self.origin, self.licence, verified, store.checksums
        return Domain(self.name, train, test, None, *about), notes

    def _store(self, facts: DataFacts, verify: bool) -> Store:
        data_dir, cache = facts.folder("data"), facts.folder("cache")
        paths = self.found(data_dir)
        settings = {"files": list(self.md5s), "size": 32}
        recipe = Recipe(self.name, settings, partial(self.build, paths), sources=None)
        if missing := [name for name in self.md5s if name not in paths]:
            kept = find_store(cache, recipe)
            if kept is not None and not self._strangers(kept.md5s):
                facts.say(f"{self.title}: files are gone; using the data prepared from them before")
                return kept
            lacking = f"data=digits lacks {self.title}'s"
            paths |= fetch_missing(lacking, missing, data_dir / self.folders[0], facts.say)
        accept = partial(self._accept, paths) if verify else recipe.accept
        return open_store(cache, replace(recipe, sources=paths, accept=accept), facts.say)

    def _strangers(self, md5s: Mapping[str, str]) -> list[str]:
        return [name for name, md5 in md5s.items() if md5 != self.md5s.get(name)]

    def _accept(self, paths: Mapping[str, Path], md5s: Mapping[str, str]) -> None:
        if strangers := self._strangers(md5s):
            name = strangers[0]
            raise UserError(
                f"{len(strangers)} of the {len(md5s)} {self.title} files are not the published "
                f"ones: {paths[name]} has content of md5 {md5s[name]}, published is "
                f"{self.md5s[name]}; delete what is wrong to have it fetched, or use all as it is "
                "with data.verify=false"
            )


# --- fetching ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Origin:
    """name: of the fetched file; urls: mirrors, tried in order; md5: of the fetched bytes."""

    name: str
    urls: tuple[str, ...]
    md5: str


class FetchError(UserError):
    """A file could not be had."""


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Within it what the disk refuses is a FetchError."""
    try:
        yield
    except OSError as error:
        raise FetchError(
            f"{printable(folder)} cannot be written ({error.strerror or error}); make it writable "
            "and give it space, or choose another data folder with paths.data=DIR"
        ) from error


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
    is taken as it is. Raises FetchError."""
    target, lock = folder / origin.name, folder.resolve() / f"{origin.name}.lock"
    part = folder / f".{origin.name}.part"
    with filled(folder):
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
