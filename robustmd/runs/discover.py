"""Which folders below an outputs folder are runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from robustmd.runs.files import CONFIG, SUMMARY
from robustmd.runs.published import RUNS, study_in
from robustmd.runs.untrusted import LONGEST_REASON

PUBLISHED = "published"  # below outputs: copies of runs, which are under version control
DEEPEST = 8  # <outputs>/<data>/<method>/<hash>/seed=<n> needs 4; a report on "/" must end
MARKS = (CONFIG, SUMMARY)


class Discovered(NamedTuple):
    """Run directories, and everything else with a reason; both in the order of their paths."""

    run_directories: list[Path]
    others: list[tuple[Path, str]]


def find_run_directories(root: Path) -> Discovered:
    """Walks `root` (a resolved folder) once. No symbolic link is followed: a target inside the tree
    is met by itself, one outside is not ours.

    A run directory holds config.yaml or summary.json, or is called seed=<n>, and has no other below
    it (a config.yaml that strayed into outputs/ hides nothing). A published study has the runs of
    its tables. Of a foreign folder only the topmost is named; empty and hidden ones are passed
    over, and so is `root`/published, which holds copies.
    """
    found = _below(root, 0)
    return Discovered(sorted(found.run_directories), sorted(found.others))


def _below(directory: Path, depth: int) -> Discovered:
    try:
        with os.scandir(directory) as listing:
            children = sorted(listing, key=lambda child: child.name)
    except OSError as error:
        return Discovered([], [(directory, f"cannot be listed: {error.strerror}")])
    found = Discovered([], [])
    if any(child.name == RUNS for child in children):
        return _of_study(directory)
    for child in children:
        if depth == 0 and child.name == PUBLISHED:
            continue
        path = directory / child.name
        if child.is_symlink():
            if os.path.isdir(path):  # noqa: PTH112 - false for a loop and for what may not be seen
                found.others.append((path, "a symbolic link: not followed"))
        elif child.is_dir() and not child.name.startswith(".") and depth < DEEPEST:
            deeper = _below(path, depth + 1)
            found.run_directories.extend(deeper.run_directories)
            found.others.extend(deeper.others)
    if found.run_directories:
        return found
    if _looks_like_run(directory, children, is_root=depth == 0):
        return Discovered([directory], [])
    if depth > 0 and (found.others or any(one.is_file(follow_symlinks=False) for one in children)):
        reason = f"not a run directory: no {' or '.join(MARKS)} in it"
        return Discovered([], [(directory, reason)])
    return found


def _of_study(directory: Path) -> Discovered:
    try:
        return Discovered([directory / place for place in study_in(directory).records], [])
    except Exception as error:  # whatever the bytes are
        reason = str(error) or type(error).__name__
        return Discovered([], [(directory, f"{RUNS} cannot be read: {reason[:LONGEST_REASON]}")])


def _looks_like_run(directory: Path, children: list[os.DirEntry[str]], *, is_root: bool) -> bool:
    marks = sum(child.name in MARKS for child in children)
    if is_root:
        return marks == len(MARKS)
    return marks > 0 or directory.name.startswith("seed=")
