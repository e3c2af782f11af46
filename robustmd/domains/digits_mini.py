"""data=digits_mini: handwritten and printed digits that come with the package.

*handwritten*: the 1,797 digits of the UCI set "Optical Recognition of Handwritten Digits" (see
uci_digits.md), 8×8 with 17 gray levels, enlarged to 28×28 by Pillow's bicubic resize and padded
with black to 32×32. A seeded shuffle makes 1,400 of them the training and 397 the test split: the
set's own order follows its writers, whose numbers are not published, and a cut through it
would measure new writers for this domain alone.

*printed*: 6,000 + 1,000 digits drawn from fonts (see printed_digits.py), every digit equally often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from robustmd.domains import printed_digits
from robustmd.domains.arrays import ArrayWriter
from robustmd.domains.checksums import fingerprint
from robustmd.domains.domain import CC_BY_4, FONTS, Domain, DomainSet, Examples
from robustmd.domains.store import Recipe, open_store

CLASSES = tuple(str(digit) for digit in range(10))
SEED = 2019  # fixed: it belongs to the data set, not to the run
SHUFFLE, TRAIN, TEST = 0, 1, 2  # independent streams under that seed
HANDWRITTEN_TRAIN = 1_400
PRINTED = {"train": (TRAIN, 6_000), "test": (TEST, 1_000)}
SIZE, INNER = 32, 28
BLOCK = 500  # images
SOURCES = {
    "handwritten": (
        "UCI Optical Recognition of Handwritten Digits (Alpaydin, Kaynak), enlarged",
        CC_BY_4,
    ),
    "printed": ("drawn from matplotlib's fonts: DejaVu, STIX, Computer Modern", FONTS),
}
UCI_FILE = Path(__file__).with_name("uci_digits.npz")


def load(cache_dir: Path, *, say: Callable[[str], None] = lambda line: None) -> DomainSet:
    """The domains "handwritten" (1,400 + 397) and "printed" (6,000 + 1,000), in this order.

    Made within seconds on first use and kept in cache_dir; no network, no file beside the package.
    Raises UserError if the cache cannot be written.
    """
    recipe = Recipe("digits_mini", 1, {"seed": SEED}, _build, sources={}, md5=str)
    store = open_store(cache_dir, recipe, lambda md5s: None, say)
    domains, sums = [], {}
    for name, (source, licence) in SOURCES.items():
        train, test = (
            Examples(store.arrays[f"{name}_{split}_images"], store.arrays[f"{name}_{split}_labels"])
            for split in ("train", "test")
        )
        domains.append(
            Domain(name, train, test, source=source, licence=licence, verified="made here")
        )
        sums[name] = {a: c for a, c in store.checksums.items() if a.startswith(f"{name}_")}
    sha256 = fingerprint("digits_mini", CLASSES, sums)
    return DomainSet("digits_mini", tuple(domains), CLASSES, sha256)


def _build(writer: ArrayWriter) -> None:
    with np.load(UCI_FILE, allow_pickle=False) as file:
        images, labels = file["images"], file["labels"]
    order = _stream(SHUFFLE).permutation(len(images))
    splits = {"train": order[:HANDWRITTEN_TRAIN], "test": order[HANDWRITTEN_TRAIN:]}
    for split, rows in splits.items():
        _add(writer, f"handwritten_{split}", labels[rows], map(_enlarged, images[rows]))
    for split, (stream, count) in PRINTED.items():
        rng = _stream(stream)
        digits = rng.permutation(np.arange(count) % len(CLASSES))
        _add(writer, f"printed_{split}", digits, printed_digits.draw(digits, rng))


def _stream(number: int) -> np.random.Generator:
    """One of the data set's independent counter-based random streams."""
    return np.random.Generator(np.random.Philox(key=[SEED, number]))


def _enlarged(image: np.ndarray) -> np.ndarray:
    """uint8 [8, 8] with values 0…16 → uint8 [32, 32, 3], black margin of 2."""
    gray = ((image.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)
    large = Image.fromarray(gray).resize((INNER, INNER), Image.Resampling.BICUBIC)
    padded = np.pad(np.asarray(large), (SIZE - INNER) // 2)
    return np.repeat(padded[..., None], 3, axis=2)


def _add(writer: ArrayWriter, name: str, labels: np.ndarray, images: Iterator[np.ndarray]) -> None:
    """Write images (uint8 [32, 32, 3] each, made one by one) and labels."""
    shape = (len(labels), SIZE, SIZE, 3)
    blocks = (image[None] for image in images)
    writer.add(f"{name}_images", "uint8", shape, blocks)
    writer.add(f"{name}_labels", "int64", labels.shape, [labels.astype(np.int64)])
