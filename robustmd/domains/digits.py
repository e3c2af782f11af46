"""data=digits: MNIST and SVHN, the paper's two domains of digits, as 32×32 RGB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from robustmd.domains import licences, mnist, svhn
from robustmd.domains.checksums import fingerprint
from robustmd.domains.domain import Domain, DomainSet, Examples
from robustmd.domains.official import CONTENT_MD5
from robustmd.domains.sources import Source, fetch_missing, find
from robustmd.domains.store import Recipe, Store, find_store, open_store
from robustmd.errors import UserError

Say = Callable[[str], None]
CLASSES = tuple(str(digit) for digit in range(10))


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
    fetch_missing("digits", to_find, found, data_dir, fetch=fetch, say=say)
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
            licence=licences.CC_BY_SA_3,
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
            licence=licences.NON_COMMERCIAL,
        ),
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
