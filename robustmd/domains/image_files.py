"""Image files as prepared arrays: a table of files, the store that they become, and how each is
decoded."""

from __future__ import annotations

import contextlib
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageOps

from robustmd.domains.domain_set import SPLITS, Domain, Split, Views, array_sha256
from robustmd.domains.store import Block, Notes, Store, open_store, stamp_of
from robustmd.errors import UserError, listed, printable
from robustmd.registry import DataFacts

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".avif"}
    | {".ppm", ".pgm", ".pbm", ".jp2"}
)
# The content decides, not the name. Only formats that Pillow decodes by itself: EPS, for one, would
# be handed to another program.
FORMATS = ("PNG", "JPEG", "MPO", "BMP", "GIF", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
AT_ONCE = 256  # files that are decoded before the first is taken


def clean(name: str) -> str:
    """One spelling for names that look the same: file systems differ in how they write ö."""
    return unicodedata.normalize("NFC", name)


def table_of(files: Sequence[Sequence[str]]) -> pd.DataFrame:
    """The files' columns domain, label, split ("": it is to be drawn) and path, below a folder."""
    import pandas as pd  # noqa: PLC0415 - takes long, and only files of images need it

    # As objects: a name need not be text that can be encoded.
    return pd.DataFrame(files, columns=["domain", "label", "split", "path"], dtype=object)


def prepare(
    name: str,
    folder: Path,
    files: pd.DataFrame,
    classes: Sequence[str],
    size: int,
    facts: DataFacts,
    *,
    skip: bool,
) -> tuple[Store, pd.DataFrame, list[str]]:
    """The store in paths.cache, where a file that cannot be read is black; the files in its order,
    domain by domain, with the column `readable`; and notes.

    folder: holds the files. skip: leave out what cannot be read. Raises UserError for such files,
    and if the cache cannot be written.
    """
    by_domain = files.assign(spelt=files["path"].map(clean)).sort_values(["domain", "spelt"])
    files = by_domain.drop(columns="spelt").reset_index(drop=True)
    labels = files["label"].map({label: row for row, label in enumerate(classes)}).to_numpy()
    paths = [folder / path for path in files["path"]]

    def pixels(rows: np.ndarray, notes: Notes) -> Iterator[np.ndarray]:
        for row, image in zip(rows, decode([paths[row] for row in rows], size), strict=True):
            if isinstance(image, str):
                notes.append((int(row), image))
            yield np.zeros((size, size, 3), np.uint8) if isinstance(image, str) else image

    def build(notes: Notes) -> Iterator[Block]:
        for domain in files["domain"].unique():
            rows = np.flatnonzero(files["domain"] == domain)
            yield domain, labels[rows], pixels(rows, notes)

    settings = [name, str(folder), list(classes) if name != "folder" else []]
    stamps = map(stamp_of, paths)
    rows = zip(files.to_numpy().tolist(), stamps, strict=True)
    content = [list(classes), [[*row, stamp] for row, stamp in rows]]
    store = open_store(facts.folder("cache"), name, size, settings, content, build, facts.say)
    left_out = [row for row, _ in store.notes]
    unreadable = [f"{printable(files.at[row, 'path'])} ({reason})" for row, reason in store.notes]
    if unreadable and not skip:
        raise UserError(
            f"{len(unreadable):,} of {len(files):,} images in {printable(folder)} cannot be read: "
            f"{listed(unreadable)}; mend or remove them, or leave them out with "
            "data.skip_unreadable=true"
        )
    notes = [f"{len(unreadable):,} unreadable and left out: {listed(unreadable)}"]
    files["readable"] = ~files.index.isin(left_out)
    return store, files, notes if unreadable else []


def given_splits(files: pd.DataFrame) -> dict[str, np.ndarray]:
    """Split → the rows (int64 [n]) of those of the files that are in it."""
    rows = {split: files.index[files["split"] == split].to_numpy() for split in SPLITS}
    return {split: own for split, own in rows.items() if len(own)}


def domain_of(
    store: Store,
    name: str,
    rows: Mapping[str, np.ndarray],
    views: Mapping[str, Views] | None = None,
    source: str = "",
    licence: str = "",
) -> Domain:
    """The domain whose splits have these rows and views."""
    first = int(store.rows[name][0])
    splits = {
        split: Split(store.images, store.labels, own, (views or {}).get(split, Views()), first)
        for split, own in rows.items()
    }
    domain = Domain(name, splits, source, licence)
    sums = dict(zip(("images", "labels"), store.sha256[name], strict=True))
    sums |= {f"{split}_rows": array_sha256(own - first) for split, own in rows.items()}
    return replace(domain, checksums=sums | domain.views_in_words())


def decode(paths: Sequence[Path], size: int) -> Iterator[np.ndarray | str]:
    """Each file as the RGB square that a model sees, uint8 [size, size, 3], or the reason why there
    is none; in order.

    The first frame is turned upright as its EXIF orientation says, brought to 8-bit RGB with white
    behind anything transparent, and its largest centred square is resized: the shorter side and
    then a centre crop. Colour profiles are not applied. By threads, since Pillow lets go of
    the interpreter; what is in memory does not grow with the number of files.
    """
    Image.init()
    with warnings.catch_warnings(), ThreadPoolExecutor() as pool:
        warnings.simplefilter("ignore")  # Pillow's, of what is odd in a file
        for start in range(0, len(paths), AT_ONCE):
            yield from pool.map(lambda path: _decoded(path, size), paths[start : start + AT_ONCE])


def _decoded(path: Path, size: int) -> np.ndarray | str:
    try:
        if not path.is_file():  # reading a pipe might never end
            return "not a file, or a link that leads nowhere"
        formats = [name for name in FORMATS if name in Image.OPEN]  # of this Pillow
        with Image.open(path, formats=formats) as image:
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
    except Exception as error:  # a decoder may raise anything over bytes that are damaged
        text = " ".join(str(getattr(error, "strerror", None) or error).split())
        return text[:80] or type(error).__name__


def _square(image: Image.Image, size: int, file_format: str | None) -> np.ndarray | str:
    """The largest centred square as 8-bit RGB, uint8 [size, size, 3]."""
    # 16-bit gray comes as 32-bit integers from PNG in older versions of Pillow, from PPM in all.
    if image.mode.startswith("I;16") or (image.mode == "I" and file_format in ("PNG", "PPM")):
        gray = np.rint(np.asarray(image) / 257).clip(0, 255)  # 65535 / 255
        image = Image.fromarray(gray.astype(np.uint8))
    elif image.mode in ("I", "F"):
        return "32-bit pixels, whose range is not known; save it with 8 or 16 bits"
    elif image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return np.asarray(ImageOps.fit(image.convert("RGB"), (size, size), Image.Resampling.BILINEAR))
