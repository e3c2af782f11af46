"""`data=folder`: a user's own domains, as folders of class folders or as a CSV of paths."""

from __future__ import annotations

import contextlib
import os
import posixpath
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageOps
from pydantic import ValidationInfo, field_validator

from robustmd.config.paths import whole
from robustmd.config.ranges import IMAGE_SIDE, SEED, SHARE, Allowed, one_of
from robustmd.domains.domain_set import (
    SPLITS,
    Domain,
    DomainSet,
    Split,
    Views,
    array_sha256,
    check_names,
    seeded_split,
)
from robustmd.domains.store import Block, Notes, Store, open_store, stamp_of
from robustmd.errors import Say, UserError, listed, printable
from robustmd.registry import Data, DataFacts, data, key

COLUMNS = Allowed(
    "a list of the manifest's columns, as [label,place]",
    lambda value: all(isinstance(name, str) for name in value),
)
LAYOUT = "DOMAIN/CLASS/image or DOMAIN/{train,test}/CLASS/image"
# Names of splits' folders here and elsewhere, in lower case.
SPLIT_WORDS = {*SPLITS, "training", "valid", "validation", "dev", "eval", "testing"}
SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".avif"}
    | {".ppm", ".pgm", ".pbm", ".jp2"}
)
# The content decides, not the name. Only formats that Pillow decodes by itself: EPS, for one, would
# be handed to another program.
FORMATS = ("PNG", "JPEG", "MPO", "BMP", "GIF", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
AHEAD = 16  # files for each thread that are decoded before the first is taken


class File(NamedTuple):
    """An image file. split: train, val, test, or "" where it is to be drawn. path: below data.root
    or the manifest's folder."""

    domain: str
    label: str
    split: str
    path: str


def load(cache_dir: Path, say: Say = lambda line: None, **settings: Any) -> DomainSet:
    """The domains of `data=folder` from Python: the keys of `Folder`, as root="DIR".

    cache_dir: keeps the prepared arrays. say: is called with a line for each thing that takes time
    or should be known. Raises UserError.
    """
    return Folder(**settings).load(DataFacts(lambda _: cache_dir, say))


@data("folder", page="own_data", order=6)
class Folder(Data):
    """Your own domains: folders of class folders, or a manifest."""

    root: str | None = key(None, help="the folder that holds DOMAIN/CLASS/IMAGE", place=True)
    manifest: str | None = key(None, help="a CSV of paths, labels and domains", place=True)
    group_by: list[str] = key([], COLUMNS, "whose values make a domain; none: the column domain")
    outside: bool = key(False, help="a manifest's paths may lead out of its folder")
    size: int = key(32, IMAGE_SIDE, "pixels of an image's sides")
    test_share: float = key(0.2, SHARE, "of a domain without splits of its own")
    split_seed: int = key(0, SEED, "draws that split, whatever the run's seed")
    skip_unreadable: bool = key(False, help="leave out what cannot be read, with a note")
    labels: str = key(
        "shared",
        one_of("shared", "per_domain"),
        "whether a class of that name is the same in every domain",
    )

    @field_validator("root", "manifest")
    @classmethod
    def _absolute(cls, place: str | None, key_: ValidationInfo) -> str | None:
        """A relative path means another folder elsewhere."""
        return whole(f"data.{key_.field_name}", place) if place else None

    def load(self, facts: DataFacts) -> DomainSet:
        """K ≥ 2 domains in the order of their names, as size × size RGB. Raises UserError: one line
        for whatever is missing, unreadable or laid out in another way."""
        if self.root and self.manifest:
            raise UserError(
                f"data.root={printable(self.root)} and data.manifest={printable(self.manifest)}: "
                "give one of the two"
            )
        if self.root and self.group_by:
            raise UserError(
                f"data.group_by=[{','.join(self.group_by)}]: names columns of data.manifest=FILE; "
                "with data.root=DIR the folders are the domains"
            )
        if self.root:
            source = folder = Path(self.root)
            files, notes = list_root(folder)
        elif self.manifest:
            source, folder = Path(self.manifest), Path(self.manifest).parent
            files, notes = list_manifest(source, self.group_by, self.outside)
        else:
            raise UserError(
                f"data=folder: say where the images are, with data.root=DIR (holding {LAYOUT}) or "
                "data.manifest=FILE.csv (columns path,domain,label,split)"
            )
        names = sorted({file.domain for file in files})
        classes = sorted({file.label for file in files})
        for kind, some in (("domain", names), ("class", classes)):
            check_names(kind, some, str(source))
        if len(names) < 2:
            raise UserError(
                f"{printable(source)}: one domain or none ({', '.join(names) or 'none'}); at "
                "least two are needed"
            )
        files, store, readable, more = prepare(
            "folder", folder, files, classes, self.size, facts, skip=self.skip_unreadable
        )
        domains, lacking = [], []
        for name, rows in readable.items():
            splits = self._splits(name, rows, files, store.labels)
            domains.append(domain_of(store, name, splits, source=str(source), verified="own files"))
            absent = sorted({*classes} - {files[row].label for row in rows})
            if absent and "label" not in self.group_by:
                lacking.append(f"{name} ({listed(absent, 3)})")
        notes += more
        if lacking:
            notes.append(f"domains without all of the {len(classes)} classes: {listed(lacking)}")
        paths = [file.path for file in files]
        return DomainSet.of("folder", domains, classes, notes, facts.say, paths)

    def _splits(
        self, name: str, rows: np.ndarray, files: Sequence[File], labels: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Split → its rows (int64 [n]), as given for all files of the domain, or drawn."""
        splits = given_splits(rows, files)
        undecided = len(rows) - sum(map(len, splits.values()))
        if splits and undecided:
            raise UserError(
                f"domain {name}: {undecided:,} of its {len(rows):,} files have no split; give one "
                "for all of them, or for none to have it drawn"
            )
        if splits:
            for split in ("train", "test"):
                if split not in splits:
                    raise UserError(
                        f"domain {name}: no image that can be read is in its {split} split; one "
                        "is needed"
                    )
            return splits
        if len(rows) < 2:
            raise UserError(
                f"domain {name}: {len(rows)} readable image(s); at least two are needed, one to "
                "train on and one to test on"
            )
        train, test = seeded_split(labels[rows], self.test_share, self.split_seed, name)
        return {"train": rows[train], "test": rows[test]}


def clean(name: str) -> str:
    """One spelling for names that look the same: file systems differ in how they write ö."""
    return unicodedata.normalize("NFC", name)


# --- which files ----------------------------------------------------------------------------------


def list_root(root: Path) -> tuple[list[File], list[str]]:
    """The image files below `root`, and a note on what is passed over. Raises UserError: another
    layout, a domain, class or split without an image."""
    where = f"data.root={printable(root)}"
    if not root.is_dir():
        raise UserError(f"{where}: no such folder; it must hold {LAYOUT}")
    files: list[File] = []
    others: list[str] = []
    folders: dict[Path, str] = {}  # that have to hold an image
    filled: set[Path] = set()
    patterns = ["/".join("*" * depth) for depth in (1, 2, 3, 4)]  # which no link leads in circles
    for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
        parts = path.relative_to(root).parts
        if any(part.startswith(".") for part in parts):
            continue
        split = parts[1] if len(parts) == 4 else ""
        is_image = path.suffix.lower() in SUFFIXES and len(parts) > 2 and split in ("", *SPLITS)
        if path.is_dir() or (len(parts) < 3 and not path.exists()):
            folders |= {path: printable("/".join(parts))} if len(parts) < 3 else {}
        elif is_image:
            files.append(File(clean(parts[0]), clean(parts[-2]), split, "/".join(parts)))
            filled |= {*path.parents}
        else:
            others.append(printable("/".join(parts)))
    splits = [name for name in folders.values() if name.lower() in SPLIT_WORDS]
    if len(splits) > 1:
        raise UserError(f"{where}: holds {', '.join(splits)}; domains come first: {LAYOUT}")
    if empty := [name for path, name in folders.items() if path not in filled]:
        raise UserError(
            f"{where}: {len(empty):,} folder(s) without an image, or links that lead nowhere: "
            f"{listed(empty)}; fill or remove them (the layout is {LAYOUT})"
        )
    note = f"{len(others):,} passed over (no image by its name, or out of place): {listed(others)}"
    return files, [note] if others else []


def list_manifest(
    manifest: Path, group_by: Sequence[str], outside: bool
) -> tuple[list[File], list[str]]:
    """The image files that a CSV file names, relative to its own folder, and a note on columns that
    are not used. outside: paths may lead out of it. Raises UserError."""
    import pandas as pd  # noqa: PLC0415 - takes long, and only manifests need it

    where = f"data.manifest={printable(manifest)}"
    try:
        table = pd.read_csv(
            manifest,
            header=None,  # else a row that is too long moves the columns
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            encoding="utf-8-sig",
        )
    except OSError as error:
        raise UserError(f"{where}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{where}: is not UTF-8 text; save it as CSV in UTF-8") from None
    except ValueError as error:
        raise UserError(f"{where}: is no CSV ({printable(str(error).strip())})") from None
    table = table.fillna("").map(str.strip)
    table = table.iloc[1:].set_axis(table.iloc[0], axis=1)
    groups = list(group_by) or ["domain"]
    needed = list(dict.fromkeys(["path", *groups, "label"]))
    absent = [name for name in needed if name not in table.columns]
    if absent or table.columns.has_duplicates:
        fault = f"no column {absent[0]}" if absent else "a column twice"
        also = ", or make domains of others with data.group_by=[label,place]"
        raise UserError(
            f"{where}: {fault} among {printable(', '.join(table.columns))}; the first line must "
            f"name the columns {', '.join(needed)} and, if wanted, split, separated by commas"
            f"{also if 'domain' in absent else ''}"
        )
    others = [printable(name) for name in table.columns if name not in (*needed, "split")]
    table = table[(table != "").any(axis=1)]

    def refuse(wrong: Any, what: str, hint: str = "", column: str = "path") -> None:
        """Name the rows where `wrong`, bool [n], holds."""
        if wrong.any():
            values = table.loc[wrong, column].items()
            rows = [f"{printable(value)} (line {line + 1})" for line, value in values]
            count = f"{len(rows):,} of {len(table):,} rows"
            raise UserError(f"{where}: {count} {what}: {listed(rows)}{hint}")

    refuse((table[needed] == "").any(axis=1), f"lack one of {', '.join(needed)}")
    table = table.assign(split=table.get("split", ""))
    allowed = f"; allowed are {', '.join(SPLITS)}, or none at all"
    refuse(~table["split"].isin(["", *SPLITS]), "have an unknown split", allowed, "split")
    if not outside:
        refuse(
            table["path"].map(_leaves), "lead out of its folder", "; data.outside=true allows it"
        )
    table["domain"] = ["+".join(map(clean, row)) for row in table[groups].to_numpy()]
    place = table.assign(path=table["path"].map(posixpath.normpath))
    refuse(place.duplicated(["domain", "path"]), "name a file that the same domain has already")
    missing = ~table["path"].map(lambda path: (manifest.parent / path).is_file()).astype(bool)
    refuse(missing, "name no file", f"; paths are relative to {printable(manifest.parent)}")
    table["label"] = table["label"].map(clean)
    rows = table[["domain", "label", "split", "path"]].to_numpy().tolist()
    note = f"columns of the manifest that are not used: {listed(others)}"
    return [File(*row) for row in rows], [note] if others else []


def _leaves(path: str) -> bool:
    parts = posixpath.normpath(path.replace("\\", "/")).split("/")
    return Path(path).is_absolute() or parts[0] == ".."


# --- from files to arrays -------------------------------------------------------------------------


def prepare(
    name: str,
    folder: Path,
    files: Iterable[File],
    classes: Sequence[str],
    size: int,
    facts: DataFacts,
    *,
    skip: bool,
) -> tuple[list[File], Store, dict[str, np.ndarray], list[str]]:
    """The files in the store's order, domain by domain; the store in paths.cache, where a file that
    cannot be read is black; domain → the rows of its readable files, int64 [n]; and notes.

    folder: holds the files. skip: leave out what cannot be read. Raises UserError for such files,
    and if the cache cannot be written.
    """
    files = sorted(files, key=lambda file: (file.domain, clean(file.path)))
    numbers = {label: number for number, label in enumerate(classes)}

    def filled(paths: Sequence[Path], first: int, notes: Notes) -> Iterator[np.ndarray]:
        for row, image in enumerate(decode(paths, size), start=first):
            if isinstance(image, str):
                notes.append((row, image))
            yield np.zeros((size, size, 3), np.uint8) if isinstance(image, str) else image

    def build(notes: Notes) -> Iterator[Block]:
        first = 0
        for domain, group in groupby(files, key=lambda file: file.domain):
            own = [*group]
            labels = np.array([numbers[file.label] for file in own])
            paths = [folder / file.path for file in own]
            yield domain, labels, filled(paths, first, notes)
            first += len(own)

    settings = [name, str(folder), list(classes) if name != "folder" else []]
    content = [list(classes), [[*file, stamp_of(folder / file.path)] for file in files]]
    store = open_store(facts.folder("cache"), name, size, settings, content, build, facts.say)
    unreadable = [f"{printable(files[row].path)} ({reason})" for row, reason in store.notes]
    if unreadable and not skip:
        raise UserError(
            f"{len(unreadable):,} of {len(files):,} images in {printable(folder)} cannot be read: "
            f"{listed(unreadable)}; mend or remove them, or leave them out with "
            "data.skip_unreadable=true"
        )
    notes = [f"{len(unreadable):,} unreadable and left out: {listed(unreadable)}"]
    left_out = [row for row, _ in store.notes]
    readable = {domain: rows[~np.isin(rows, left_out)] for domain, rows in store.rows.items()}
    return files, store, readable, notes if unreadable else []


def given_splits(rows: np.ndarray, files: Sequence[File]) -> dict[str, np.ndarray]:
    """Split → those of the rows whose files are in it."""
    splits = np.array([files[row].split for row in rows])
    return {split: rows[splits == split] for split in SPLITS if split in splits}


def domain_of(
    store: Store,
    name: str,
    rows: Mapping[str, np.ndarray],
    views: Mapping[str, Views] | None = None,
    **about: str,
) -> Domain:
    """The domain whose splits have these rows and views. about: its source and so on."""
    first = int(store.rows[name][0])
    splits = {
        split: Split(store.images, store.labels, own, (views or {}).get(split, Views()), first)
        for split, own in rows.items()
    }
    domain = Domain(name, splits, **about)  # type: ignore[arg-type]
    sums = dict(zip(("images", "labels"), store.sha256[name], strict=True))
    sums |= {f"{split}_rows": array_sha256(own - first) for split, own in rows.items()}
    return replace(domain, checksums=sums | domain.views_in_words())


def decode(paths: Sequence[Path], size: int) -> Iterator[np.ndarray | str]:
    """Each file as the RGB square that a model sees, uint8 [size, size, 3], or the reason why there
    is none; in order.

    The first frame is turned upright as its EXIF orientation says, brought to 8-bit RGB with white
    behind anything transparent, and its largest centred square is resized: the shorter side and
    then a centre crop. Colour profiles are not applied. By threads, one a core, since Pillow lets
    go of the interpreter; what is in memory does not grow with the number of files.
    """
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    at_once = AHEAD * (threads or 1)
    Image.init()
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        warnings.simplefilter("ignore")  # Pillow's, of what is odd in a file
        for start in range(0, len(paths), at_once):
            yield from pool.map(lambda path: _decoded(path, size), paths[start : start + at_once])


def _decoded(path: Path, size: int) -> np.ndarray | str:
    try:
        if not path.is_file():  # reading a pipe might never end
            return "not a file, or a link that leads nowhere"
        if path.stat().st_size == 0:
            return "empty, zero bytes"
        formats = [name for name in FORMATS if name in Image.OPEN]  # of this Pillow
        with Image.open(path, formats=formats) as image:
            if image.width * image.height > (Image.MAX_IMAGE_PIXELS or np.inf):
                raise Image.DecompressionBombError
            # A JPEG is decoded at a fraction of its size if that leaves three times the wanted one:
            # says Pillow of its reducing_gap, the result is hardly told from the full one.
            image.draft(None, (3 * size, 3 * size))
            image.load()
            upright = image
            with contextlib.suppress(Exception):  # damaged EXIF data say nothing
                upright = ImageOps.exif_transpose(image)
            return _square(upright, size, image.format)
    except Image.UnidentifiedImageError:
        return "no image of a known format"
    except Image.DecompressionBombError:
        return f"more than {Image.MAX_IMAGE_PIXELS:,} pixels, perhaps a decompression bomb"
    except Exception as error:  # a decoder may raise anything over bytes that are damaged
        text = " ".join(str(getattr(error, "strerror", None) or error).split())
        return text[:80] or type(error).__name__


def _square(image: Image.Image, size: int, file_format: str | None) -> np.ndarray | str:
    """The largest centred square as 8-bit RGB, uint8 [size, size, 3]."""
    # 16-bit gray comes as 32-bit integers from PNG in older versions of Pillow, from PPM in all.
    if image.mode.startswith("I;16") or (image.mode == "I" and file_format in ("PNG", "PPM")):
        wide = np.asarray(image)
        is_clear = wide == image.info.get("transparency")  # the one value that is, if any
        gray = np.where(is_clear, 255, np.rint(wide / 257)).clip(0, 255)  # 65535 / 255
        image = Image.fromarray(gray.astype(np.uint8))
    elif image.mode in ("I", "F"):
        return "32-bit pixels, whose range is not known; save it with 8 or 16 bits"
    elif image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return np.asarray(ImageOps.fit(image.convert("RGB"), (size, size), Image.Resampling.BILINEAR))
