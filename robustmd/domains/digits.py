"""data=digits: MNIST and SVHN, the paper's two domains of digits, as 32×32 RGB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from robustmd.domains import mnist, svhn
from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import fingerprint
from robustmd.domains.domain import CC_BY_SA_3, NON_COMMERCIAL, Domain, DomainSet, Examples
from robustmd.domains.fetch import FetchError, fetch_file, origin
from robustmd.domains.store import Recipe, Store, find_store, open_store
from robustmd.errors import UserError

Say = Callable[[str], None]
CLASSES = tuple(str(digit) for digit in range(10))
CONTENT_MD5 = mnist.MD5 | svhn.MD5


@dataclass(frozen=True)
class Source:
    """Where one domain comes from.

    name, title: the domain's, and the data set's own
    files: their names; suffixes: what may follow a name, as .gz
    folders: where they are looked for, below paths.data; fetched files go to the first
    md5: of a file's content; raises UserError for a file that cannot be read
    build: writes the arrays from the files' paths, by name; raises UserError for bad files
    origin, licence: one line each, for people
    """

    name: str
    title: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    suffixes: tuple[str, ...]
    md5: Callable[[Path], str]
    build: Callable[[Mapping[str, Path], ArrayWriter], None]
    origin: str
    licence: str


def load(
    data_dir: Path,
    cache_dir: Path,
    *,
    names: Sequence[str] = ("mnist", "svhn"),
    extra: bool = False,
    verify: bool = True,
    fetch: bool = True,
    say: Say = lambda line: None,
) -> DomainSet:
    """The domains "mnist" (60,000 + 10,000) and "svhn" (73,257 + 26,032), in this order.

    data_dir: holds MNIST/raw/ and svhn/ (or SVHN's files themselves), as torchvision lays them
        out; it may be read-only where nothing is missing
    cache_dir: keeps the prepared arrays
    names: the domains that are wanted, in whatever order; the other's files are not looked at
    extra: add SVHN's extra digits to its training split, as the paper does: 604,388
    verify: refuse files whose content is not the published one; otherwise that is noted
    fetch: fetch what is missing
    say: is called with a line for each thing that takes time or should be known

    Raises UserError if files are missing and cannot be fetched, are not the published ones, or
    cannot be read, and if the cache cannot be written.
    """
    sources = [s for s in digit_sources(extra=extra, verify=verify) if s.name in names]
    found = {source.name: find(source, data_dir) for source in sources}
    kept = {
        source.name: store
        for source in sources
        if (store := _kept_without_files(source, found[source.name], cache_dir, say))
    }
    to_find = [source for source in sources if source.name not in kept]
    _fetch_missing(to_find, found, data_dir, fetch=fetch, say=say)
    domains, notes, checksums = [], [], {}
    for source in sources:
        paths = found[source.name]
        store = kept.get(source.name) or open_store(
            cache_dir, _recipe(source, paths), partial(_accept, source, paths, verify), say
        )
        domains.append(_domain(source, store))
        checksums[source.name] = store.checksums
        if strangers := _unofficial(store.md5s):
            names = ", ".join(strangers)
            notes.append(
                f"{source.title} is read from unofficial files (data.verify=false): {names}"
            )
            say(notes[-1])
    name = fingerprint("digits", CLASSES, checksums)
    return DomainSet("digits", tuple(domains), CLASSES, name, tuple(notes))


def digit_sources(*, extra: bool = False, verify: bool = True) -> tuple[Source, Source]:
    return (
        Source(
            name="mnist",
            title="MNIST",
            files=mnist.FILES,
            folders=("MNIST/raw",),
            suffixes=("", ".gz"),
            md5=mnist.md5,
            build=mnist.build,
            origin="MNIST (LeCun, Cortes, Burges), 28×28 enlarged to 32×32",
            licence=CC_BY_SA_3,
        ),
        Source(
            name="svhn",
            title="SVHN",
            files=(*svhn.FILES, svhn.EXTRA) if extra else svhn.FILES,
            folders=("svhn", "SVHN", "."),
            suffixes=("",),
            md5=svhn.md5,
            build=partial(svhn.build, published=verify),
            origin=f"SVHN cropped digits (Netzer et al. 2011){', train + extra' if extra else ''}",
            licence=NON_COMMERCIAL,
        ),
    )


def find(source: Source, data_dir: Path) -> dict[str, Path]:
    """The files that are there: name → path. Raises UserError for a folder that cannot be read."""
    found: dict[str, Path] = {}
    for folder in source.folders:
        for name in source.files:
            for suffix in source.suffixes:
                path = data_dir / folder / f"{name}{suffix}"
                if name not in found and _is_file(path):
                    found[name] = path
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})") from error


def _fetch_missing(
    sources: Sequence[Source],
    found: Mapping[str, dict[str, Path]],
    data_dir: Path,
    *,
    fetch: bool,
    say: Say,
) -> None:
    """Fetch what `found` (source → file name → path) lacks, and add it there.

    Raises one UserError that names everything that is still missing.
    """
    missing, reasons = [], []
    for source in sources:
        paths, folder = found[source.name], data_dir / source.folders[0]
        for name in source.files if fetch else ():
            try:
                paths[name] = paths.get(name) or fetch_file(origin(name), folder, say)
            except FetchError as error:
                reasons.append(str(error))
                break  # the other files come from the same hosts
        if left := [origin(name) for name in source.files if name not in paths]:
            names = ", ".join(place.name for place in left)
            missing.append(f"{names} (belong into {folder}, come from {left[0].sites})")
    if missing:
        why = f"fetching failed: {'; '.join(reasons)}" if fetch else "fetching is switched off"
        raise UserError(
            f"data=digits lacks {' and '.join(missing)}; {why}; "
            "meanwhile data=digits_mini needs neither files nor network"
        )


def _kept_without_files(
    source: Source, paths: Mapping[str, Path], cache_dir: Path, say: Say
) -> Store | None:
    """The prepared published data, where files that they were made from have been removed."""
    if len(paths) == len(source.files):
        return None
    store = find_store(cache_dir, _recipe(source, None))
    if store is None or _unofficial(store.md5s):
        return None
    say(f"{source.title}: not all files are at hand; using the data prepared from them before")
    return store


def _accept(
    source: Source, paths: Mapping[str, Path], verify: bool, md5s: Mapping[str, str]
) -> None:
    """Refuse content other than the published, unless verify is off."""
    strangers = _unofficial(md5s)
    if verify and strangers:
        name = strangers[0]
        raise UserError(
            f"{len(strangers)} of the {len(md5s)} {source.title} files are not the published ones: "
            f"{paths[name]} has content of md5 {md5s[name]}, published is {CONTENT_MD5[name]}; "
            "delete what is wrong to have it fetched, or use all as it is with data.verify=false"
        )


def _unofficial(md5s: Mapping[str, str]) -> list[str]:
    return [name for name, md5 in md5s.items() if md5 != CONTENT_MD5.get(name)]


def _recipe(source: Source, paths: Mapping[str, Path] | None) -> Recipe:
    return Recipe(
        name=source.name,
        version=1,
        build=partial(source.build, paths or {}),
        settings={"files": list(source.files), "size": mnist.SIZE},
        sources=paths,
        md5=source.md5,
    )


def _domain(source: Source, store: Store) -> Domain:
    return Domain(
        source.name,
        train=Examples(store.arrays["train_images"], store.arrays["train_labels"]),
        test=Examples(store.arrays["test_images"], store.arrays["test_labels"]),
        source=source.origin,
        licence=source.licence,
        verified="not official" if _unofficial(store.md5s) else "official",
    )
