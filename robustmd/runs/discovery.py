"""Finds the run directories below a folder, whatever else lies there."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from robustmd.runs import files

MAX_DEPTH = 8  # <outputs>/<data>/<method>/<hash>/seed=<n> needs 4; a report on "/" must end
MARKS = (files.CONFIG, files.SUMMARY)


@dataclass
class Discovered:
    """Run directories, and everything else with a reason; both in the order of their paths."""

    run_directories: list[Path] = field(default_factory=list)
    others: list[tuple[Path, str]] = field(default_factory=list)


def find_run_directories(root: Path) -> Discovered:
    """Walks `root` (a resolved folder) once. No symbolic link is followed: a target inside the tree
    is met by itself, one outside is not ours.

    A run directory holds config.yaml or summary.json, or is called seed=<n>, and has no other below
    it (a config.yaml that strayed into outputs/ hides nothing). Of a foreign folder only the
    topmost is named; empty and hidden ones are passed over, and so is `root`/published, which holds
    copies.
    """
    found = Discovered()
    _visit(root, 0, found)
    found.run_directories.sort()
    found.others.sort()
    return found


def _visit(directory: Path, depth: int, found: Discovered) -> bool:
    """Adds what lies in `directory` to `found`; says whether a run is in it."""
    try:
        with os.scandir(directory) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        found.others.append((directory, f"cannot be listed: {error.strerror}"))
        return False
    below = Discovered()
    holds_run = False
    for entry in entries:
        if depth == 0 and entry.name == files.PUBLISHED:
            continue
        path = directory / entry.name
        if entry.is_symlink():
            if os.path.isdir(path):  # noqa: PTH112 - false for a loop and for what may not be seen
                below.others.append((path, "a symbolic link: not followed"))
        elif entry.is_dir() and not entry.name.startswith(".") and depth < MAX_DEPTH:
            holds_run |= _visit(path, depth + 1, below)
    if holds_run:
        found.run_directories += below.run_directories
        found.others += below.others
    elif _looks_like_run(directory, entries, is_root=depth == 0):
        found.run_directories.append(directory)
        return True
    elif depth == 0:
        found.others += below.others
    elif below.others or any(entry.is_file(follow_symlinks=False) for entry in entries):
        found.others.append((directory, f"not a run directory: no {' or '.join(MARKS)} in it"))
    return holds_run


def _looks_like_run(directory: Path, entries: list[os.DirEntry[str]], *, is_root: bool) -> bool:
    marks = sum(entry.name in MARKS for entry in entries)
    if is_root:
        return marks == len(MARKS)
    return marks > 0 or directory.name.startswith("seed=")
