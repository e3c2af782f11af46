"""What `robustmd data` shows: the data sets there are, what is in one, its duplicates, examples."""

from __future__ import annotations

import hashlib
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from robustmd.config.check import check_taken, make_config
from robustmd.config.keys import described
from robustmd.config.loading import load_domains, with_test_notes
from robustmd.console import make_console
from robustmd.domains.domain_set import SPLITS, Domain, DomainSet, Split, Views, size_in_words
from robustmd.domains.store import check_store
from robustmd.errors import UserError, listed, printable
from robustmd.registry import DATA
from robustmd.runs.files import write_atomically

CHANGEABLE = ("data", "paths", "seed")  # what can change what is loaded
PIPED_WIDTH = 120  # letters to a line where no terminal says how many
FORMS = {".png": "png", ".pdf": "pdf"}

MOST_PAIRS = 20  # of splits that share images, in a printed list
MOST_ROWS, MOST_CLASSES, MOST_COLUMNS = 40, 24, 10  # of a picture of examples
SIDE, GAP = 64, 3  # of an example and between two, in pixels


def show_data(words: Sequence[str], picture: Path | None, check: bool) -> int:
    """`robustmd data`: load the data set that `words` names, as `train` would, and print it.

    Raises:
        UserError: the words name none, it cannot be loaded, or the picture cannot be written.
    """
    name = words[0] if words and "=" not in words[0] else None
    overrides = list(words[0 if name is None else 1 :])
    check_taken(overrides, CHANGEABLE, "data")
    for override in overrides:
        if override.startswith("data="):
            raise UserError(f"{override}: name the data set without data=, as robustmd data digits")
    _check_picture(picture)
    if name is None and (picture or check):
        flag = "--check" if check else f"--show {picture}"
        raise UserError(f"{flag}: say of which data set, as robustmd data digits {flag}")
    config = make_config(overrides if name is None else [f"data={name}", *overrides])
    console = make_console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    if name is None:
        list_data_sets(config.paths.folder("data"), console)
        return 0

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    domains = load_domains(config, say)
    seen = [domain for domain in domains.names if domain not in config.data.unseen]
    domains = with_test_notes(domains, seen, say)
    print_data_set(domains, config.data.unseen, console)
    if check:
        if folder := prepared_folder(domains):
            check_store(folder)
        say("Checked: all prepared arrays are what they were prepared as")
    if picture:
        form = FORMS[picture.suffix.lower()]
        try:
            write_atomically(picture, lambda stream: draw_examples(domains, stream, form))
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"--show {picture}: cannot be written ({reason})") from None
        say(f"examples drawn to {picture}")
    return 0


def _check_picture(picture: Path | None) -> None:
    if picture and picture.suffix.lower() not in FORMS:
        raise UserError(f"--show {picture}: must end in {' or '.join(FORMS)}")
    if picture and not picture.absolute().parent.is_dir():
        raise UserError(f"--show {picture}: there is no folder {picture.parent}")


def list_data_sets(data_dir: Path, console: Console) -> None:
    """Every option of the data group: how it is typed, what it is, what is at hand of it."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for column in ("data set", "what it is", "to fetch", "at hand", "licence"):
        table.add_column(column, overflow="fold")
    for name in DATA.offered:
        schema = DATA[name]
        size, state, licence = "–", "–", "–"
        if (known := schema().at_hand(data_dir)) is not None:
            licence, count, there = known
            size = decimal(count) if count else "–"
            parts = (f"{part} {'there' if there[part] else 'missing'}" for part in there)
            state = ", ".join(parts) or "in the package"
        table.add_row(name, described(schema).partition("\n")[0], size, state, licence)
    console.print(table)
    line = f"Files are looked for in {data_dir} (paths.data=DIR or ROBUSTMD_DATA: elsewhere)."
    console.print(f"\n{line}", soft_wrap=True)
    console.print("robustmd data NAME fetches or finds one, verifies, prepares and shows it.")


def print_data_set(data: DomainSet, unseen: Sequence[str], console: Console) -> None:
    """A row for every domain, then duplicates, fingerprint and where the prepared arrays lie."""
    inputs = size_in_words(data.images, data.image_size)
    if data.are_images:
        inputs = f"images of {data.image_size[1]}×{data.image_size[0]} RGB"
    labels = f"{len(data.classes)} {'numbers' if data.are_numbers else 'classes'}"
    size = decimal(data.images.nbytes + data.targets.nbytes)
    head = f"{data.name}: {len(data)} domains, {labels}, {inputs}, {size} prepared"
    lines = []
    splits = [split for split in SPLITS if any(split in domain.splits for domain in data)]
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("domain", overflow="fold", min_width=8)
    for column in (*splits, "classes"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("checksum", "licence", "source"):
        table.add_column(column, overflow="fold")
    for domain, classes in zip(data, data.class_masks().sum(axis=1), strict=True):
        counts = (f"{len(domain.splits[s]):,}" if s in domain.splits else "–" for s in splits)
        name = f"{domain.name} (unseen)" if domain.name in unseen else domain.name
        checked, licence = domain.verified or "not checked", domain.licence or "not known"
        table.add_row(name, *counts, str(classes), checked, licence, domain.source)
        for split_name, split in domain.splits.items():
            if (count := len(split.views.variants)) > 1:
                images = f"{split.stored:,} images in {count} variants each"
                lines.append(f"{domain.name} {split_name}: {images}")
    lines += [*duplicates_in_words(shared_images(data)), f"Fingerprint: {data.fingerprint}"]
    if (folder := prepared_folder(data)) is not None:
        lines.append(f"Prepared in: {folder}")
    console.print(f"\n{head}", soft_wrap=True)
    console.print(table)
    for line in lines:
        console.print(line, soft_wrap=True)


def prepared_folder(data: DomainSet) -> Path | None:
    """The store that the images lie in; None where they are in memory."""
    base: object = data.images
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return Path(str(base.filename)).parent if isinstance(base, np.memmap) else None


# --- the same image twice -------------------------------------------------------------------------


def shared_images(data: DomainSet) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Two splits, as "mnist train" and "mnist test", that share images, all pixels as prepared, or
    one split, twice, that has some more than once → how many images; how many examples of the
    second show one of them; how many images are under two labels.

    Domains that are made of the very same rows, as noisy copies are, are looked at once.
    """
    distinct: dict[bytes, Domain] = {}
    for domain in data:
        distinct.setdefault(domain.train.rows.tobytes(), domain)
    labels_of: dict[bytes, dict[str, list[bytes]]] = {}  # image → split → labels
    for domain in distinct.values():
        for name, split in domain.splits.items():
            for row in split.rows:
                image = hashlib.blake2b(data.images[row].tobytes(), digest_size=16).digest()
                labels = labels_of.setdefault(image, {}).setdefault(f"{domain.name} {name}", [])
                labels.append(data.targets[row].tobytes())
    images, examples, torn = (Counter[tuple[str, str]]() for _ in range(3))
    for in_splits in labels_of.values():
        twice = [(place, place) for place, labels in in_splits.items() if len(labels) > 1]
        for pair in (*twice, *combinations(in_splits, 2)):
            images[pair] += 1
            examples[pair] += len(in_splits[pair[1]])
            torn[pair] += len({*in_splits[pair[0]], *in_splits[pair[1]]}) > 1
    return {pair: (count, examples[pair], torn[pair]) for pair, count in images.items()}


def duplicates_in_words(shared: Mapping[tuple[str, str], tuple[int, int, int]]) -> list[str]:
    if not shared:
        return ["Exact duplicates: none, within a split, across splits or across domains"]
    lines = ["Exact duplicates (every pixel as prepared):"]
    for (first, second), (images, examples, torn) in [*shared.items()][:MOST_PAIRS]:
        where, what = f"{first} and {second}", f"in both; {examples:,} examples of {second}"
        if first == second:
            where, what = f"within {first}", f"more than once, {examples:,} examples"
        labels = f"; {torn:,} images under two labels" if torn else ""
        lines.append(f"  {where}: {images:,} images {what}{labels}")
    more = len(shared) - MOST_PAIRS
    return [*lines, f"  and {more} more pairs of splits"] if more > 0 else lines


# --- a picture of examples ------------------------------------------------------------------------


def draw_examples(data: DomainSet, stream: IO[bytes], form: str) -> None:
    """Training examples as the model sees them: a row for each domain, columns for the classes; of
    many domains or classes some, from the first to the last.

    form: png or pdf. Raises UserError where there are no images.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second

    if not data.are_images:
        raise UserError(f"data {data.name}: has features and no images; no picture shows them")
    domains = [data.domains[i] for i in _evenly(len(data), MOST_ROWS)]
    classes = _evenly(len(data.classes), MOST_CLASSES)
    each, step = max(1, MOST_COLUMNS // len(classes)), SIDE + GAP
    paper = np.full((len(domains) * step, each * len(classes) * step, 3), 255, dtype=np.uint8)
    for row, domain in enumerate(domains):
        for place, label in enumerate(classes):
            for number, image in enumerate(_examples(domain.train, label, each)):
                top, left = row * step, (place * each + number) * step
                high, wide = image.shape[:2]
                paper[top : top + high, left : left + wide] = image
    figure = Figure(figsize=(paper.shape[1] / 96 + 1.6, paper.shape[0] / 96 + 2))
    axes = figure.subplots()
    axes.imshow(paper, interpolation="nearest")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    columns = [printable(data.classes[label]) for label in classes]
    turned = {"rotation": 45, "ha": "left"} if each == 1 else {}
    centres = (np.arange(len(classes)) + 0.5) * each * step
    axes.set_xticks(centres, columns, parse_math=False, **turned)  # type: ignore[arg-type]
    rows = [printable(domain.name) for domain in domains]
    axes.set_yticks((np.arange(len(domains)) + 0.5) * step, rows, parse_math=False)
    origins = dict.fromkeys(f"{d.source}; {d.licence or 'no licence known'}" for d in domains)
    sources = textwrap.fill(printable(listed([*origins], 4)), max(40, paper.shape[1] // 5))
    axes.set_xlabel(sources, fontsize=7, parse_math=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # of an alphabet that the font has not
        figure.savefig(stream, format=form, dpi=96, bbox_inches="tight")


def _evenly(count: int, most: int) -> list[int]:
    """The numbers below count, or `most` ≥ 2 of more, from the first to the last."""
    return list(dict.fromkeys(np.linspace(0, count - 1, min(count, most)).round().astype(int)))


def _examples(split: Split, label: int, most: int) -> Iterator[np.ndarray]:
    """A few examples of a class, drawn alike each time, as they are seen, in SIDE × SIDE pixels."""
    targets = split.targets
    positions = np.flatnonzero(targets[:, label] > 0 if targets.ndim == 2 else targets == label)
    positions = np.random.default_rng([0, label]).permutation(positions)[:most]
    rows, turns = np.divmod(positions, len(split.views.variants))
    images = split.all_images[split.rows[rows]]
    if split.views != Views() and len(images):
        images = _as_seen(images, split.rows[rows], turns, split.views)
    for image in images:
        scale = SIDE / max(image.shape[:2])
        size = [max(1, round(scale * side)) for side in image.shape[1::-1]]
        method = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS
        yield np.asarray(Image.fromarray(image).resize(size, method))


def _as_seen(images: np.ndarray, rows: np.ndarray, turns: np.ndarray, views: Views) -> np.ndarray:
    """uint8 [n, h, w, 3]: the images after variant, central crop and noise."""
    import torch  # noqa: PLC0415 - takes seconds

    from robustmd.domains.variants import Look, Variants, keys_of_images  # noqa: PLC0415

    variants = Variants([views], images.shape[1:3], torch.device("cpu"))
    numbers = torch.tensor([variants.turns[name] for name in views.variants])[turns]
    keys = keys_of_images(0, torch.from_numpy(rows)) if views.sigma else None
    levels = torch.zeros_like(numbers) if views.sigma else None
    look = Look(torch.arange(len(images)), numbers if numbers.any() else None, None, keys, levels)
    return variants.finish(variants.read(torch.from_numpy(images), look), look).numpy()
