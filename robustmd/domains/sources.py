"""The files that a domain is made of: found under paths.data, or fetched to there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.fetch import FetchError, fetch_file
from robustmd.domains.official import Origin, origin
from robustmd.errors import UserError

Say = Callable[[str], None]


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


def fetch_missing(
    data: str,
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
        wanted = {name: origin(name) for name in source.files if name not in paths}
        for name, place in wanted.items() if fetch else ():
            try:
                paths[name] = fetch_file(place, folder, say)
            except FetchError as error:
                reasons.append(str(error))
                break  # the other files come from the same hosts
        left = [place for name, place in wanted.items() if name not in paths]
        if left:
            missing.append(_missing(left, folder))
    if missing:
        why = f"fetching failed: {'; '.join(reasons)}" if fetch else "fetching is switched off"
        raise UserError(
            f"data={data} lacks {' and '.join(missing)}; {why}; "
            "meanwhile data=digits_mini needs neither files nor network"
        )


def _missing(origins: Sequence[Origin], folder: Path) -> str:
    names = ", ".join(place.name for place in origins)
    sites = " or ".join(url.rpartition("/")[0] + "/" for url in origins[0].urls)
    return f"{names} (belong into {folder}, come from {sites})"
