"""`data=folder`: a user's own domains, as folders of class folders or as a CSV of paths."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationInfo, field_validator

from robustmd.config.paths import whole
from robustmd.config.ranges import IMAGE_SIDE, SEED, SHARE, Allowed, one_of
from robustmd.domains.domain_set import SPLITS, DomainSet, check_names, seeded_split
from robustmd.domains.image_files import SUFFIXES, clean, domain_of, given_splits, prepare, table_of
from robustmd.errors import Say, UserError, listed, printable
from robustmd.registry import Data, DataFacts, data, key

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = Allowed(
    "a list of the manifest's columns, as [label,place]",
    lambda value: all(isinstance(name, str) for name in value),
)
LAYOUT = "DOMAIN/CLASS/image or DOMAIN/{train,test}/CLASS/image"
# Names of splits' folders here and elsewhere, in lower case.
SPLIT_WORDS = {*SPLITS, "training", "valid", "validation", "dev", "eval", "testing"}


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
        if self.root and not self.manifest and not self.group_by:
            source = folder = Path(self.root)
            files, notes = list_root(folder)
        elif self.manifest and not self.root:
            source, folder = Path(self.manifest), Path(self.manifest).parent
            files, notes = list_manifest(source, self.group_by, self.outside)
        else:
            raise UserError(
                f"data=folder: give data.root=DIR (holding {LAYOUT}) or data.manifest=FILE.csv "
                "(columns path,domain,label,split), one of the two; data.group_by=[…] names "
                "columns of the manifest"
            )
        names, classes = sorted(set(files["domain"])), sorted(set(files["label"]))
        check_names("domain", names, str(source))
        check_names("class", classes, str(source))
        if len(names) < 2:
            raise UserError(
                f"{printable(source)}: one domain or none ({', '.join(names) or 'none'}); at "
                "least two are needed"
            )
        store, files, more = prepare(
            "folder", folder, files, classes, self.size, facts, skip=self.skip_unreadable
        )
        notes, domains, lacking = [*notes, *more], [], []
        for name in names:
            own = files[(files["domain"] == name) & files["readable"]]
            splits = self._splits(name, own, store.labels)
            domains.append(domain_of(store, name, splits, source=str(source)))
            absent = sorted({*classes} - {*own["label"]})
            if absent and "label" not in self.group_by:
                lacking.append(f"{name} ({listed(absent, 3)})")
        if lacking:
            notes.append(f"domains without all of the {len(classes)} classes: {listed(lacking)}")
        paths = files["path"].tolist()
        return DomainSet.of("folder", domains, classes, notes, facts.say, paths)

    def _splits(self, name: str, own: pd.DataFrame, labels: np.ndarray) -> dict[str, np.ndarray]:
        """Split → its rows (int64 [n]), as given for all files of the domain, or drawn."""
        splits, undecided = given_splits(own), (own["split"] == "").sum()
        if splits and undecided:
            fault = f"{undecided:,} of its {len(own):,} files have no split; give one for all of "
            fault += "them, or for none to have it drawn"
        elif splits and not {"train", "test"} <= splits.keys():
            lacking = "test" if "train" in splits else "train"
            fault = f"no image that can be read is in its {lacking} split; one is needed"
        elif splits:
            return splits
        elif len(own) < 2:
            fault = f"{len(own)} readable image(s); at least two are needed, one to train on and "
            fault += "one to test on"
        else:
            rows = own.index.to_numpy()
            train, test = seeded_split(labels[rows], self.test_share, self.split_seed, name)
            return {"train": rows[train], "test": rows[test]}
        raise UserError(f"domain {name}: {fault}")


def list_root(root: Path) -> tuple[pd.DataFrame, list[str]]:
    """The image files below `root`, and a note on what is passed over. Raises UserError: another
    layout, or a domain without an image."""
    where = f"data.root={printable(root)}"
    if not root.is_dir():
        raise UserError(f"{where}: no such folder; it must hold {LAYOUT}")
    files: list[tuple[str, str, str, str]] = []
    others: list[str] = []
    patterns = ["/".join("*" * depth) for depth in (1, 2, 3, 4)]  # which no link leads in circles
    for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
        parts = path.relative_to(root).parts
        split = parts[1] if len(parts) == 4 else ""
        if path.is_dir() or any(part.startswith(".") for part in parts):
            continue
        if path.suffix.lower() in SUFFIXES and len(parts) > 2 and split in ("", *SPLITS):
            files.append((clean(parts[0]), clean(parts[-2]), split, "/".join(parts)))
        else:
            others.append(printable("/".join(parts)))
    folders = [path.name for path in sorted(root.iterdir()) if path.is_dir()]
    splits = [name for name in folders if name.lower() in SPLIT_WORDS]
    if len(splits) > 1:
        raise UserError(f"{where}: holds {', '.join(splits)}; domains come first: {LAYOUT}")
    named = {domain for domain, *_ in files}
    if empty := [name for name in folders if clean(name) not in named and name[0] != "."]:
        raise UserError(
            f"{where}: {len(empty):,} folder(s) without an image: {printable(listed(empty))}; fill "
            f"or remove them (the layout is {LAYOUT})"
        )
    note = f"{len(others):,} passed over (no image by its name, or out of place): {listed(others)}"
    return table_of(files), [note] if others else []


def list_manifest(
    manifest: Path, group_by: Sequence[str], outside: bool
) -> tuple[pd.DataFrame, list[str]]:
    """The image files that a CSV file names, relative to its own folder, and a note on columns that
    are not used. outside: paths may lead out of it. Raises UserError."""
    import pandas as pd  # noqa: PLC0415 - as above

    where = f"data.manifest={printable(manifest)}"
    try:
        table = pd.read_csv(
            manifest,
            index_col=False,
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
    table = table.rename(columns=str.strip).fillna("").map(str.strip)
    groups = list(group_by) or ["domain"]
    needed = list(dict.fromkeys(["path", *groups, "label"]))
    if absent := [name for name in needed if name not in table.columns]:
        raise UserError(
            f"{where}: no column {absent[0]} among {printable(', '.join(table.columns))}; the "
            f"first line must name the columns {', '.join(needed)} and, if wanted, split, "
            "separated by commas; data.group_by=[label,place] makes domains of other columns"
        )
    others = [printable(name) for name in table.columns if name not in (*needed, "split")]
    table = table[(table != "").any(axis=1)].assign(split=table.get("split", ""))

    def refuse(wrong: pd.Series, what: str, column: str = "path") -> None:
        """Name the rows where `wrong`, bool [n], holds."""
        if wrong.any():
            values = table.loc[wrong, column].items()
            lines = [f"{printable(value)} (line {row + 2})" for row, value in values]
            raise UserError(
                f"{where}: {len(lines):,} of {len(table):,} rows {what}: {listed(lines)}"
            )

    refuse((table[needed] == "").any(axis=1), f"lack one of {', '.join(needed)}")
    known = table["split"].isin(["", *SPLITS])
    refuse(~known, f"have a split that is none of {', '.join(SPLITS)}, or none at all", "split")
    table["path"] = table["path"].map(posixpath.normpath)
    inside = ~table["path"].str.match(r"/|\.\.(/|$)")
    refuse(~inside & (not outside), "lead out of its folder, which data.outside=true allows")
    table["domain"] = ["+".join(map(clean, row)) for row in table[groups].to_numpy()]
    table["label"] = table["label"].map(clean)
    refuse(table.duplicated(["domain", "path"]), "name a file that the same domain has already")
    there = table["path"].map(lambda path: (manifest.parent / path).is_file()).astype(bool)
    refuse(~there, f"name no file in {printable(manifest.parent)}")
    note = f"columns of the manifest that are not used: {listed(others)}"
    files = table[["domain", "label", "split", "path"]].to_numpy().tolist()
    return table_of(files), [note] if others else []
