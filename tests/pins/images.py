"""Pinned images: files as users have them, what they become, and the data sets that ship."""

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from PIL import Image
from pins.runs import digest

from robustmd.domains import DomainSet

MODES = ("RGB", "L", "RGBA", "P", "CMYK")
ORIENTATION = 0x0112  # EXIF: 1 to 8
BREEDS = {  # ImageNet's synset, the name in Oxford-IIIT Pet, class, species (1 cat, 2 dog)
    "n02085620": ("chihuahua", 11, 2),
    "n02124075": ("Egyptian_Mau", 12, 1),
    "n02123394": ("Persian", 24, 1),
}
SETS = {
    **{
        name: [f"data={name}"]
        for name in ("digits_mini", "digits_typed", "typed_few", "handwritten_few", "typed_turned")
    },
    "folder of odd images": ["data=folder", "data.root=odd", "data.size=32"],
    "the same at 48 pixels": ["data=folder", "data.root=odd", "data.size=48", "data.split_seed=3"],
    "manifest": ["data=folder", "data.manifest=odd.csv"],
    "manifest, group_by": ["data=folder", "data.manifest=odd.csv", "data.group_by=[label,place]"],
    "digits": ["data=digits", "data.verify=false", "data.svhn.extra=true"],
    "pets": ["data=pets", "data.classes=[chihuahua,egyptian_mau,persian]", "data.size=40"],
    "validation": ["data=digits_mini", "data.validation=0.2", "seed=3"],
    "sizes": ["data=digits_mini", "data.sizes=[400,100]"],
    "rotations": ["data=digits_rotated", "data.verify=false", "data.angles=[0,30,90]"],
}


def load(overrides: list[str]) -> DomainSet:
    """The data set that a run with these settings trains on. A rebuild may edit this adapter."""
    from robustmd.config.check import make_config
    from robustmd.config.loading import load_domains

    own = ["paths.data=data", "paths.cache=cache"]
    return load_domains(make_config([*overrides, *own]), lambda _: None)


def arrays_of(domains: DomainSet) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """{domain: {split: (stored pixels [n, H, W, 3], labels [n])}}, in the order of its examples.

    A rebuild may edit this adapter, and `load`: how the arrays are reached is not pinned.
    """
    return {
        domain.name: {split: (e.images, e.targets) for split, e in domain.splits.items()}
        for domain in domains
    }


def record(name: str) -> dict[str, Any]:
    """Fingerprint, classes, and hashes of pixels and labels of one data set."""
    domains = load(SETS[name])
    arrays = {
        f"{domain}, {split}, {what}": digest(array)
        for domain, splits in arrays_of(domains).items()
        for split, pair in splits.items()
        for what, array in zip(("pixels", "labels"), pair, strict=True)
    }
    return {"fingerprint": {"sha256": domains.fingerprint}, "classes": domains.classes, **arrays}


def write_files(root: Path) -> None:
    """All files that the pins read, below a working folder."""
    write_folder(root / "folder")
    write_odd(root / "odd")
    write_manifest(root)
    write_digits(root / "data")
    write_pets(root / "data")


def noise(random: np.random.Generator, *shape: int) -> Image.Image:
    return Image.fromarray(random.integers(0, 256, shape, dtype=np.uint8))


def write_folder(root: Path) -> None:
    """Three domains of plain images; each has two of three classes."""
    random = np.random.default_rng(0)
    for k, domain in enumerate(("art", "photo", "sketch")):
        for label in (k, (k + 1) % 3):
            place = root / domain / "wxy"[label]
            place.mkdir(parents=True)
            for i in range(20):
                pixels = 60 + 60 * label + random.normal(0, 30, (32, 32, 3))
                Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(place / f"{i}.png")


def write_odd(root: Path) -> None:
    """Images of all modes, types and EXIF orientations; "photo" has splits of its own."""
    random = np.random.default_rng(0)
    splits = {"art": [""], "photo": ["train", "val", "test"], "sketch": [""]}
    for domain, parts in splits.items():
        for part in parts:
            for label in ("cat", "dog") if domain == "sketch" else ("cat", "dog", "owl"):
                (root / domain / part / label).mkdir(parents=True)
                for i in range(16):
                    write_image(root / domain / part / label, i, random)
    deep = random.integers(0, 65536, (50, 40)).astype(np.uint16)
    Image.fromarray(deep).save(root / "art" / "cat" / "deep.png")


def write_image(folder: Path, i: int, random: np.random.Generator) -> None:
    mode = MODES[i % len(MODES)]
    height, width = random.integers(20, 90, 2)
    image = noise(random, height, width, 3)
    if mode == "RGBA":
        image.putalpha(noise(random, height, width))
    elif mode != "RGB":
        image = image.convert(mode)
    exif = Image.Exif()
    exif[ORIENTATION] = i % 8 + 1
    if mode == "CMYK" or i in (5, 6, 10, 11):
        image.save(folder / f"{i:02}.jpg", exif=exif)
    else:
        image.save(folder / f"{i:02}.png")


def write_manifest(root: Path) -> None:
    """A table of the odd images: domain, label and place."""
    lines = ["path,domain,label,place"]
    for i, path in enumerate(sorted((root / "odd").rglob("*.*"))):
        relative = path.relative_to(root).as_posix()
        lines.append(f"{relative},{relative.split('/')[1]},{path.parent.name},{'nm'[i % 2]}")
    (root / "odd.csv").write_text("\n".join([*lines, ""]))


def write_digits(data: Path) -> None:
    """Small files in the formats of MNIST (IDX) and SVHN (MATLAB), of random images."""
    random = np.random.default_rng(0)
    mnist, svhn = data / "MNIST" / "raw", data / "svhn"
    mnist.mkdir(parents=True)
    svhn.mkdir()
    for stem, count in (("train", 60), ("t10k", 30)):
        arrays = {"images-idx3": random.integers(0, 256, (count, 28, 28))}
        arrays["labels-idx1"] = np.arange(count) % 10
        for name, values in arrays.items():
            sizes = struct.pack(f">{values.ndim}I", *values.shape)
            head = struct.pack(">HBB", 0, 8, values.ndim) + sizes
            idx = gzip.compress(head + values.astype(np.uint8).tobytes())
            (mnist / f"{stem}-{name}-ubyte.gz").write_bytes(idx)
    for stem, count in (("train", 50), ("test", 30), ("extra", 20)):
        images = random.integers(0, 256, (32, 32, 3, count), dtype=np.uint8)
        labels = (np.arange(count, dtype=np.uint8) % 10 + 1)[:, None]
        scipy.io.savemat(
            svhn / f"{stem}_32x32.mat", {"X": images, "y": labels}, do_compression=True
        )


def write_pets(data: Path) -> None:
    """Both sets of pets with 9 + 6 photos of each of three breeds."""
    random = np.random.default_rng(0)
    vgg = data / "oxford-iiit-pet"
    (vgg / "images").mkdir(parents=True)
    (vgg / "annotations").mkdir()
    lists: dict[str, list[str]] = {"trainval": [], "test": []}
    for synset, (name, number, species) in BREEDS.items():
        for i in range(15):
            split, part = ("train", "trainval") if i < 9 else ("val", "test")
            folder = data / "imagenet" / split / synset
            folder.mkdir(parents=True, exist_ok=True)
            noise(random, 60, 50, 3).save(folder / f"{synset}_{i}.JPEG")
            noise(random, 44, 70, 3).save(vgg / "images" / f"{name}_{i + 1}.jpg")
            lists[part].append(f"{name}_{i + 1} {number} {species} 1")
    for part, lines in lists.items():
        (vgg / "annotations" / f"{part}.txt").write_text("\n".join([*lines, ""]))
