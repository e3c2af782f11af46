"""What a tracker is told of a run, and the decorator by which it comes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from packaging.requirements import Requirement

from robustmd.errors import UserError
from robustmd.extras import install, required
from robustmd.registry import checked

Step = tuple[int, Mapping[str, float]]  # iteration, {tag: finite number}


@dataclass(frozen=True)
class TrackedRun:
    """One run, from its directory.

    id: 16 hex digits, its own as long as the directory is. name: `<data>/<method>/<8 hex>/
    seed=<n>`. experiment: what `experiment=` named, else the data set. config: config.yaml as
    {dotted key: value}. outputs: the folder of all runs.
    """

    id: str
    name: str
    experiment: str
    config: Mapping[str, Any]
    outputs: Path

    def folder(self, *parts: str) -> Path:
        """`<outputs>/.trackers/<parts>`, made. Raises OSError: a symbolic link leads elsewhere."""
        path = self.outputs.resolve().joinpath(".trackers", *parts)
        if path.resolve() != path:
            raise OSError(f"{path}: a symbolic link on the way leads elsewhere; remove it")
        path.mkdir(parents=True, exist_ok=True)
        return path


TRACKERS: dict[str, Callable[[TrackedRun], Any]] = {}
NEEDS: dict[str, str] = {}
Kind = TypeVar("Kind", bound=type[Any])


def tracker(name: str, *, needs: str = "") -> Callable[[Kind], Kind]:
    """Register `tracking=[<name>]`: a class that is made of a `TrackedRun`, with two methods.

    `log(steps)` takes [(iteration, {tag: number})], ascending; an iteration may come in two parts.
    A run that goes on is told from its first iteration again: take nothing twice. `end(status,
    table, files)` is called when a run, or this try of it, is over; table: a DataFrame with a row
    for each domain, None if it has not finished; files: {name: path} of examples.png and, where
    asked for, final.pt. All of it may raise or hang: the run goes on without the tracker.

    Args:
        name: an identifier that no other tracker has.
        needs: the package that it imports; whether it is there is checked before any work.

    Raises:
        UserError: the name is no identifier, or taken.
    """

    def enter(kind: Kind) -> Kind:
        checked("tracker", name, kind, TRACKERS.get(name))
        TRACKERS[name], NEEDS[name] = kind, needs
        return kind

    return enter


def check_trackers(names: Sequence[str]) -> None:
    """Raises UserError for a name that no tracker has, or whose package is not there."""
    for name in names:
        if name not in TRACKERS:
            raise UserError(
                f"tracker {name}: there is none; allowed: {', '.join(TRACKERS)}; one of your own "
                "comes with imports=[MODULE]"
            )
        needs = NEEDS[name]
        if needs and not getattr(find_spec(needs), "origin", None):  # a folder `wandb` has none
            packages = required(name) or [Requirement(needs)]  # not ours: no extra is called so
            raise UserError(f"tracker {name}: {needs} is not installed; {install(packages)}")
