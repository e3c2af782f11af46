"""What `robustmd data` shows: the data sets there are, what is in one, its duplicates, examples."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image, ImageOps
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from robustmd.config.check import check_taken, make_config
from robustmd.config.keys import described
from robustmd.config.loading import load_domains, with_test_notes
from robustmd.console import make_console
from robustmd.domains.domain_set import SPLITS, DomainSet, Split, Views
from robustmd.domains.store import check_store
from robustmd.errors import UserError, printable
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
    if picture and picture.suffix.lower() not in FORMS:
        raise UserError(f"--show {picture}: must end in {' or '.join(FORMS)}")
    if picture and not picture.absolute().parent.is_dir():
        raise UserError(f"--show {picture}: there is no folder {picture.parent}")
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
    print_domains(domains, config.data.unseen, console)
    for line in duplicates_in_words(domains):
        say(line)
    say(f"Fingerprint: {domains.fingerprint}")
    if folder := prepared_folder(domains):
        say(f"Prepared in: {folder}")
        if check:
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


def list_data_sets(data_dir: Path, console: Console) -> None:
    """Every option of the data group: how it is typed, what it is, what is at hand of it."""
    table = Table("data set", "what it is", "at hand", box=None, pad_edge=False, show_edge=False)
    for name in DATA.offered:
        parts = DATA[name]().at_hand(data_dir).items()
        state = ", ".join(f"{part} {'there' if there else 'missing'}" for part, there in parts)
        table.add_row(name, described(DATA[name]).partition("\n")[0], state)
    console.print(table)
    line = f"Files are looked for in {data_dir} (paths.data=DIR or ROBUSTMD_DATA: elsewhere)."
    console.print(f"\n{line}", soft_wrap=True)
    console.print("robustmd data NAME fetches or finds one, verifies, prepares and shows it.")


def print_domains(data: DomainSet, unseen: Sequence[str], console: Console) -> None:
    """A row for every domain, and a line for every split that is seen in variants."""
    splits = [split for split in SPLITS if any(split in domain.splits for domain in data)]
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("domain", overflow="fold", min_width=8)
    for column in (*splits, "classes"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("licence", "source"):
        table.add_column(column, overflow="fold")
    lines = []
    for domain, classes in zip(data, data.class_masks().sum(axis=1), strict=True):
        counts = (f"{len(domain.splits[s]):,}" if s in domain.splits else "–" for s in splits)
        name = f"{domain.name} (unseen)" if domain.name in unseen else domain.name
        licence = domain.licence or "not known"
        table.add_row(name, *counts, str(classes), licence, domain.source)
        for split_name, split in domain.splits.items():
            if (count := len(split.views.variants)) > 1:
                images = f"{split.stored:,} images in {count} variants each"
                lines.append(f"{domain.name} {split_name}: {images}")
    size = decimal(data.images.nbytes + data.targets.nbytes)
    console.print(f"\n{data.head()}, {size} prepared", soft_wrap=True)
    console.print(table)
    for line in lines:
        console.print(line, soft_wrap=True)


def prepared_folder(data: DomainSet) -> Path | None:
    """The store that the images lie in; None where they are in memory."""
    base: object = data.images
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return Path(str(base.filename)).parent if isinstance(base, np.memmap) else None


def duplicates_in_words(data: DomainSet) -> list[str]:
    """Which splits share images, all pixels as prepared, and which have some more than once.

    Domains that are made of the very same rows, as noisy copies are, are looked at once.
    """
    distinct = {domain.train.rows.tobytes(): domain for domain in reversed(data.domains)}
    counts: dict[bytes, Counter[str]] = defaultdict(Counter)  # image → split → how often
    for domain in reversed(distinct.values()):
        for name, split in domain.splits.items():
            for row in split.rows:
                image = hashlib.blake2b(data.images[row].tobytes(), digest_size=16).digest()
                counts[image][f"{domain.name} {name}"] += 1
    images, examples = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for in_splits in counts.values():
        twice = [(place, place) for place, count in in_splits.items() if count > 1]
        for pair in (*twice, *combinations(in_splits, 2)):
            images[pair] += 1
            examples[pair] += in_splits[pair[1]]
    if not images:
        return ["Exact duplicates: none, within a split, across splits or across domains"]
    lines = ["Exact duplicates (every pixel as prepared):"]
    for (first, second), count in [*images.items()][:MOST_PAIRS]:
        more = f"{examples[first, second]:,} examples"
        where, what = f"{first} and {second}", f"in both; {more} of {second}"
        if first == second:
            where, what = f"within {first}", f"more than once, {more}"
        lines.append(f"  {where}: {count:,} images {what}")
    left_out = len(images) - MOST_PAIRS
    return [*lines, f"  and {left_out} more pairs of splits"] if left_out > 0 else lines


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
                box, picture = Image.Resampling.BOX, Image.fromarray(image)
                fitted = ImageOps.pad(picture, (SIDE, SIDE), box, color="white")
                top, left = row * step, (place * each + number) * step
                paper[top : top + SIDE, left : left + SIDE] = np.asarray(fitted)
    figure = Figure(figsize=(paper.shape[1] / 96 + 1.6, paper.shape[0] / 96 + 2))
    axes = figure.subplots()
    axes.imshow(paper, interpolation="nearest")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    columns = [printable(data.classes[label]) for label in classes]
    centres = (np.arange(len(classes)) + 0.5) * each * step
    axes.set_xticks(centres, columns, parse_math=False, rotation=45, ha="left")
    rows = [printable(domain.name) for domain in domains]
    axes.set_yticks((np.arange(len(domains)) + 0.5) * step, rows, parse_math=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # of an alphabet that the font has not
        figure.savefig(stream, format=form, dpi=96, bbox_inches="tight")


def _evenly(count: int, most: int) -> list[int]:
    """The numbers below count, or `most` ≥ 2 of more, from the first to the last."""
    return list(dict.fromkeys(np.linspace(0, count - 1, min(count, most)).round().astype(int)))


def _examples(split: Split, label: int, most: int) -> np.ndarray:
    """A few examples of a class, drawn alike each time, as they are seen: uint8 [m, h, w, 3] after
    variant, central crop and noise."""
    targets = split.targets
    positions = np.flatnonzero(targets[:, label] > 0 if targets.ndim == 2 else targets == label)
    positions = np.random.default_rng([0, label]).permutation(positions)[:most]
    rows, turns = np.divmod(positions, len(split.views.variants))
    images, rows = split.all_images[split.rows[rows]], split.rows[rows]
    if split.views == Views() or not len(images):
        return images

    import torch  # noqa: PLC0415 - takes seconds

    from robustmd.domains.variants import Look, Variants, keys_of_images  # noqa: PLC0415

    variants = Variants([split.views], images.shape[1:3], torch.device("cpu"))
    numbers = torch.tensor([variants.turns[name] for name in split.views.variants])[turns]
    keys = keys_of_images(0, torch.from_numpy(rows)) if split.views.sigma else None
    levels = torch.zeros_like(numbers) if split.views.sigma else None
    look = Look(torch.arange(len(images)), numbers if numbers.any() else None, None, keys, levels)
    return variants.finish(variants.read(torch.from_numpy(images), look), look).numpy()
