"""`data=folder`: a user's own domains, as folders of class folders or as a CSV of paths."""

from __future__ import annotations

import os
import posixpath
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robustmd.config.paths import whole
from robustmd.config.ranges import IMAGE_SIDE, SEED, SHARE, Allowed, one_of
from robustmd.domains.decoding import SUFFIXES, decode_all
from robustmd.domains.domain_set import Domain, DomainSet, Split, array_sha256, seeded_split
from robustmd.domains.store import Images, Notes, open_store, stamp_of
from robustmd.domains.views import SPLITS, Views
from robustmd.errors import Say, UserError, listed, printable, readable
from robustmd.registry import DataFacts, Settings, data, key

COLUMNS = Allowed(
    "a list of the manifest's columns, as [label,place]",
    lambda value: all(isinstance(name, str) for name in value),
)
LAYOUT = "DOMAIN/CLASS/image or DOMAIN/{train,test}/CLASS/image"
# What splits' folders are called here and elsewhere, in lower case.
SPLIT_WORDS = {*SPLITS, "training", "valid", "validation", "dev", "eval", "testing"}
LITTER = {"thumbs.db", "desktop.ini", "__macosx"}
LONGEST_NAME = 200
MOST_NOTES = 10


class File(NamedTuple):
    """One image file. split: train, val or test, "" where it is to be drawn. path: below the root
    or the manifest's folder. stamp: its size, time of change, and the time of change that no
    program can set back; [] where there is no file."""

    domain: str
    label: str
    split: str
    path: str
    stamp: list[int]


def load(cache_dir: Path, say: Say = lambda line: None, **settings: Any) -> DomainSet:
    """The same from Python: the keys of `Folder`, as root="DIR".

    cache_dir: keeps the prepared arrays; say: is called with a line for each thing that takes time
    or should be known. Raises UserError.
    """
    return Folder(**settings).load(DataFacts(lambda _: cache_dir, say))


@data("folder", page="own_data", order=6)
class Folder(Settings):
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

    def __post_init__(self) -> None:
        """A relative path means another folder elsewhere."""
        self.root = whole("data.root", str(self.root)) if self.root else None
        self.manifest = whole("data.manifest", str(self.manifest)) if self.manifest else None

    def load(self, facts: DataFacts) -> DomainSet:
        """K ≥ 2 domains in the order of their names, as size × size RGB. Raises UserError: one line
        for whatever is missing, unreadable or laid out in another way."""
        source, folder, files, notes = self._files()
        counts = Counter(file.domain for file in files)
        if len(counts) < 2:
            names = ", ".join(counts) or "none"
            raise UserError(
                f"{printable(source)}: one domain or none ({names}); at least two are needed"
            )
        classes = sorted({file.label for file in files})
        prepared = prepare(
            "folder", folder, files, classes, self.size, facts, skip=self.skip_unreadable
        )
        notes += prepared.notes
        domains = []
        for name, readable_rows in prepared.rows.items():
            rows = self._splits(name, readable_rows, prepared)
            about = {"source": str(source), "verified": "own files"}
            domains.append(prepared.domain(name, rows, {}, **about))
            seen = {prepared.files[row].label for split in rows.values() for row in split}
            lacking = [label for label in classes if label not in seen]
            if lacking and "label" not in self.group_by:
                share = f"{len(lacking)} of {len(classes)} classes"
                notes.append(f"domain {name} lacks {share}: {listed(lacking)}")
        if len(notes) > MOST_NOTES:
            more = len(notes) - MOST_NOTES + 1
            notes = [*notes[: MOST_NOTES - 1], f"and {more} more domains lack classes"]
        return DomainSet.of("folder", domains, classes, notes, facts.say, prepared.paths)

    def _files(self) -> tuple[Path, Path, list[File], list[str]]:
        """The source as it was given, the folder of the paths, the files and notes on the rest."""
        if self.root and self.manifest:
            raise UserError(
                f"data.root={printable(self.root)} and data.manifest={printable(self.manifest)}: "
                "give one of the two"
            )
        if self.manifest:
            path = Path(self.manifest)
            return path, path.parent, *list_manifest(path, self.group_by, self.outside)
        if self.root and self.group_by:
            raise UserError(
                f"data.group_by=[{','.join(self.group_by)}]: names columns of data.manifest=FILE; "
                "with data.root=DIR the folders are the domains"
            )
        if self.root:
            return Path(self.root), Path(self.root), *list_root(Path(self.root))
        raise UserError(
            f"data=folder: say where the images are, with data.root=DIR (holding {LAYOUT}) or "
            "data.manifest=FILE.csv (columns path,domain,label,split)"
        )

    def _splits(self, name: str, rows: np.ndarray, prepared: Prepared) -> dict[str, np.ndarray]:
        """Split → its rows (int64 [n]), as given for all files of the domain, or drawn."""
        given = [file.split for file in prepared.files if file.domain == name]
        if any(given):
            if lacking := given.count(""):
                raise UserError(
                    f"domain {name}: {lacking:,} of its {len(given):,} files have no split; "
                    "give one for all of them, or for none to have it drawn"
                )
            found = prepared.given_splits(rows)
            for split in ("train", "test"):
                if split not in given:
                    raise UserError(
                        f"domain {name}: no file is in its {split} split; one is needed"
                    )
                if split not in found:
                    raise UserError(f"domain {name}: none of its {split} images can be read")
            return found
        if len(rows) < 2:
            raise UserError(
                f"domain {name}: {len(rows)} readable image(s); at least two are needed, one to "
                "train on and one to test on"
            )
        train, test = seeded_split(prepared.labels[rows], self.test_share, self.split_seed, name)
        return {"train": rows[train], "test": rows[test]}


# --- from files to arrays -------------------------------------------------------------------------


class Prepared(NamedTuple):
    """All files' arrays: images uint8 [N, size, size, 3], black where a file could not be read, and
    labels int64 [N]. rows: domain → those of its readable files; first: domain → its first row."""

    files: list[File]
    images: np.ndarray
    labels: np.ndarray
    rows: dict[str, np.ndarray]
    first: dict[str, int]
    checksums: dict[str, dict[str, str]]
    notes: list[str]

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self.files]

    def given_splits(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Split → those of the rows that are in it."""
        given = np.array([self.files[row].split for row in rows])
        return {split: rows[given == split] for split in SPLITS if split in given}

    def domain(
        self, name: str, rows: Mapping[str, np.ndarray], views: Mapping[str, Views], **about: str
    ) -> Domain:
        """The domain whose splits have these rows and views; about: its source and so on."""
        first = self.first[name]
        splits = {
            split: Split(self.images, self.labels, own, views.get(split, Views()), first)
            for split, own in rows.items()
        }
        domain = Domain(name, splits, **about)  # type: ignore[arg-type]
        of_rows = {f"{split}_rows": array_sha256(own - first) for split, own in rows.items()}
        sums = self.checksums[name] | of_rows | domain.views_in_words()
        return replace(domain, checksums=sums)


def prepare(
    name: str,
    folder: Path,
    files: Iterable[File],
    classes: Sequence[str],
    size: int,
    facts: DataFacts,
    *,
    skip: bool,
) -> Prepared:
    """The arrays of the files in `folder`, domain by domain, from the store in paths.cache.

    skip: leave out what cannot be read. Raises UserError for such files, for one that changes while
    it is read, and if the cache cannot be written.
    """
    files = sorted(files, key=lambda file: (file.domain, clean(file.path)))
    counts = Counter(file.domain for file in files)

    def build(notes: Notes) -> Iterator[Images]:
        first = 0
        for count in counts.values():
            own, rows = files[first : first + count], range(first, first + count)
            labels = np.array([classes.index(file.label) for file in own], dtype=np.int64)
            yield Images(labels, _decoded(folder, own, rows, size, notes, facts.say))
            first += count

    settings = [name, str(folder), size, list(classes) if name != "folder" else []]
    content = [list(classes), [list(file) for file in files]]
    store = open_store(
        facts.folder("cache"), name, settings, content, list(counts), build, facts.say
    )
    unreadable = {row: text for row, text in store.notes if text != DIM}
    dim = [printable(files[row].path) for row, text in store.notes if text == DIM]
    found = [f"{printable(files[row].path)} ({text})" for row, text in unreadable.items()]
    if found and not skip:
        raise UserError(
            f"{len(found):,} of {len(files):,} images in {printable(folder)} cannot be read: "
            f"{listed(found)}; mend or remove them, or leave them out with "
            "data.skip_unreadable=true"
        )
    notes = [f"{len(found):,} unreadable and left out: {listed(found)}"] if found else []
    if dim:
        notes.append(
            f"{len(dim):,} of 16 bits whose values fit into 12, so nearly black: {listed(dim)}; "
            "scale them to 65,535 if they should not be"
        )
    rows = {name: block.rows() for name, block in store.blocks.items()}
    rows = {name: own[~np.isin(own, list(unreadable))] for name, own in rows.items()}
    first = {name: block.first for name, block in store.blocks.items()}
    sums = {name: {"images": b.images, "labels": b.labels} for name, b in store.blocks.items()}
    return Prepared(files, store.images, store.labels, rows, first, sums, notes)


DIM = "12 bits"  # noted of an image of 16 that uses 12, and so is nearly black
PROGRESS = 10_000  # images between two lines


def _decoded(
    folder: Path, files: Sequence[File], rows: range, size: int, notes: Notes, say: Say
) -> Iterator[np.ndarray]:
    """The files' images, uint8 [1, size, size, 3] each; `notes` gets (row, why there is none)."""
    paths = [folder / file.path for file in files]
    for row, file, path, result in zip(rows, files, paths, decode_all(paths, size), strict=True):
        if stamp_of(path) != file.stamp:
            raise UserError(
                f"{printable(path)} changed while it was read; run again when it is complete"
            )
        if isinstance(result, str):
            notes.append((row, result))
            yield np.zeros((1, size, size, 3), dtype=np.uint8)
        else:
            pixels, is_dim = result
            notes += [(row, DIM)] if is_dim else []
            yield pixels[None]
        if (done := row - rows.start + 1) % PROGRESS == 0:
            say(f"{done:,} of the {len(files):,} images of domain {file.domain} read")


# --- which files: folders -------------------------------------------------------------------------


def clean(name: str) -> str:
    """One spelling for names that look the same: file systems differ in how they write ö."""
    return unicodedata.normalize("NFC", name)


def checked_name(kind: str, name: str, where: str) -> str:
    """The name of a domain or class, spelt uniformly. Raises UserError for one that is no name.

    Names become keys of files and columns of tables: no slash, no control character.
    """
    name = clean(name)
    unfit = any(c in "/\\" or unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name)
    if unfit or not 0 < len(name) <= LONGEST_NAME:
        raise UserError(
            f"{where}: {kind} {printable(name)} must be 1 to {LONGEST_NAME} printable characters "
            "without / and \\"
        )
    return name


def list_root(root: Path) -> tuple[list[File], list[str]]:
    """The image files below `root`, and a note on what is passed over. Raises UserError: another
    layout, a class or split without an image, a link that leads nowhere."""
    where = f"data.root={printable(root)}"
    if not root.is_dir():
        raise UserError(f"{where}: no such folder; it must hold {LAYOUT}")
    others: list[str] = []  # names below root of what is passed over, empty, or leads nowhere
    empty: list[str] = []
    lost: list[str] = []
    files: list[File] = []
    domains = _folders(root, root, others, lost)
    _check_layout(where, [path.name for path in domains])
    for folder in domains:
        domain = checked_name("domain", folder.name, where)
        inner = _folders(folder, root, others, lost)
        names = {path.name for path in inner}
        splits = {"": inner}
        if "train" in names and names <= set(SPLITS):
            splits = {path.name: _folders(path, root, others, lost) for path in inner}
            if "test" not in names:
                raise UserError(
                    f"{where}: domain {printable(domain)} has {_below(root, folder)}/train but no "
                    "test beside it; add one, or put the classes into the domain's folder"
                )
        for split, labels in splits.items():
            empty += [] if labels else [_below(root, folder / split)]
            for path in labels:
                label, own = checked_name("class", path.name, _below(root, folder)), len(files)
                for image in _visible(path):
                    if image.suffix.lower() in SUFFIXES and not image.is_dir():
                        relative = image.relative_to(root).as_posix()
                        files.append(File(domain, label, split, relative, stamp_of(image)))
                    else:
                        others.append(_below(root, image))
                empty += [] if len(files) > own else [_below(root, path)]
    if lost:
        raise UserError(
            f"{where}: {len(lost):,} link(s) lead nowhere, where a domain or class may be meant: "
            f"{listed(list(dict.fromkeys(lost)))}; mend or remove them"
        )
    if empty:
        raise UserError(
            f"{where}: {len(empty):,} folder(s) without an image: {listed(empty)}; fill or remove "
            f"them (the layout is {LAYOUT})"
        )
    others = list(dict.fromkeys(others))
    passed = f"{len(others):,} passed over (no image by its name, or out of place): "
    return files, [passed + listed(others)] if others else []


def _check_layout(where: str, names: Sequence[str]) -> None:
    """Domains come first. Raises UserError where their folders are called as splits are."""
    splits = [name for name in names if name.lower() in SPLIT_WORDS]
    trains = any(name.lower() in ("train", "training") for name in splits)
    if splits and (len(splits) == len(names) or (trains and len(splits) > 1)):
        raise UserError(f"{where}: holds {', '.join(splits)}; domains come first: {LAYOUT}")


def _visible(folder: Path) -> list[Path]:
    """What is in a folder, but for what is hidden, in order."""
    with readable(folder):
        paths = sorted(folder.iterdir())
    return [p for p in paths if not p.name.startswith(".") and p.name.lower() not in LITTER]


def _folders(folder: Path, root: Path, others: list[str], lost: list[str]) -> list[Path]:
    """The folders in a folder, but for links that lead back to one that they lie in."""
    kept = []
    for path in _visible(folder):
        if path.is_symlink() and not os.path.exists(path):  # noqa: PTH110 - false for a loop
            lost.append(_below(root, path))
        elif path.is_dir() and not (path.is_symlink() and _leads_back(path)):
            kept.append(path)
        else:
            others.append(_below(root, path))
    return kept


def _leads_back(link: Path) -> bool:
    target, place = link.resolve(), link.parent.resolve()
    return target == place or target in place.parents


def _below(root: Path, path: Path) -> str:
    """A path as messages show it: below data.root."""
    return printable(path.relative_to(root).as_posix())


# --- which files: a manifest ----------------------------------------------------------------------


def list_manifest(
    manifest: Path, group_by: Sequence[str], outside: bool
) -> tuple[list[File], list[str]]:
    """The image files that a CSV file names, relative to its own folder, and a note on columns that
    are not used. outside: paths may lead out of it. Raises UserError."""
    where = f"data.manifest={printable(manifest)}"
    groups = list(group_by) or ["domain"]
    needed = list(dict.fromkeys(["path", *groups, "label"]))
    rows, others = _read_manifest(manifest, needed, where)

    def refuse(wrong: list[str], what: str, hint: str = "") -> None:
        if wrong:
            count = f"{len(wrong):,} of {len(rows):,} rows"
            raise UserError(f"{where}: {count} {what}: {listed(wrong)}{hint}")

    empty = [f"line {line}" for line, row in rows.items() if not all(row[n] for n in needed)]
    refuse(empty, f"lack one of {', '.join(needed)}")
    splits = {line: row.get("split", "") for line, row in rows.items()}
    wrong = [f"{printable(s)!r} (line {n})" for n, s in splits.items() if s not in (*SPLITS, "")]
    refuse(wrong, "have an unknown split", f"; allowed are {', '.join(SPLITS)}, or none at all")
    paths = {line: f"{printable(row['path'])} (line {line})" for line, row in rows.items()}
    if not outside:
        leaving = [paths[line] for line, row in rows.items() if _leaves(row["path"])]
        refuse(leaving, "lead out of its folder", "; data.outside=true allows it")
    values = {line: tuple(clean(row[name]) for name in groups) for line, row in rows.items()}
    domains = {line: "+".join(of_row) for line, of_row in values.items()}
    meant = {domains[line]: values[line] for line in rows}
    unclear = [paths[line] for line in rows if meant[domains[line]] != values[line]]
    refuse(unclear, "make one domain's name of other values than another row", "; rename them")
    first: dict[tuple[str, str], int] = {}
    places = {line: (domains[line], posixpath.normpath(row["path"])) for line, row in rows.items()}
    repeated = [paths[n] for n, place in places.items() if first.setdefault(place, n) != n]
    refuse(repeated, "name a file that the same domain has already")
    stamps = {line: stamp_of(manifest.parent / row["path"]) for line, row in rows.items()}
    missing = [paths[n] for n, row in rows.items() if not (manifest.parent / row["path"]).is_file()]
    refuse(missing, "name no file", f"; paths are relative to {printable(manifest.parent)}")
    files = []
    for line, row in rows.items():
        domain = checked_name("domain", domains[line], f"{where}, line {line}")
        label = checked_name("label", row["label"], f"{where}, line {line}")
        files.append(File(domain, label, splits[line], row["path"], stamps[line]))
    return files, [f"columns of the manifest that are not used: {listed(others)}"] if others else []


def _read_manifest(
    manifest: Path, needed: Sequence[str], where: str
) -> tuple[dict[int, dict[str, str]], list[str]]:
    """Line → its values by column, without blank space around them; and the names of the columns
    that are not used. Raises UserError."""
    import pandas as pd  # noqa: PLC0415 - takes long, and only manifests need it

    try:
        table = pd.read_csv(
            manifest,
            header=None,
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
    except pd.errors.EmptyDataError:
        table = pd.DataFrame([[""]])
    except ValueError as error:
        reason = printable(str(error).strip())
        raise UserError(f"{where}: is no CSV ({reason})") from None
    header, *lines = ([str(value).strip() for value in row] for row in table.values.tolist())
    missing = [name for name in needed if name not in header]
    if missing or len(set(header)) < len(header):
        fault = f"no column {missing[0]}" if missing else "a column twice"
        groups = ", or make domains of others with data.group_by=[label,place]"
        raise UserError(
            f"{where}: {fault} among {printable(', '.join(header))}; the first line must name the "
            f"columns {', '.join(needed)} and, if wanted, split, separated by commas"
            f"{groups if 'domain' in missing else ''}"
        )
    filled = {number: values for number, values in enumerate(lines, start=2) if any(values)}
    rows = {number: dict(zip(header, values, strict=True)) for number, values in filled.items()}
    return rows, [printable(name) for name in header if name not in (*needed, "split")]


def _leaves(path: str) -> bool:
    parts = posixpath.normpath(path.replace("\\", "/")).split("/")
    return Path(path).is_absolute() or parts[0] == ".."
