"""Checkpoints in a run directory: whole or not there, the last two kept, loaded as data only."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from robustmd.errors import Say, UserError, first_line
from robustmd.runs import files

KEPT = 2


def save(run: Path, iteration: int, state: dict[str, Any]) -> None:
    """Write `checkpoints/iteration-<n>.pt`, then drop all but the last two."""
    write(run / files.CHECKPOINTS / f"iteration-{iteration:08d}.pt", state)
    for old in _all(run)[:-KEPT]:
        files.remove(old)


def newest_first(
    run: Path, say: Say = lambda _: None, *, most: int = files.LARGEST
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(iteration, state) of the checkpoints, on the CPU; a damaged one, or one of more than `most`
    bytes, is passed over, and `say` told a line."""
    for path in reversed(_all(run)):
        try:
            yield _iteration(path), _read(path, most)
        except UserError as error:
            say(f"{error}: passed over")


def drop(run: Path, *, after: int = -1, but: int | None = None) -> None:
    """Remove the checkpoints of later iterations (all) but one; the models stay."""
    for old in _all(run):
        if _iteration(old) > after and _iteration(old) != but:
            files.remove(old)


def load_model(run: Path, name: str = files.FINAL_MODEL) -> dict[str, Any]:
    """The finished run's last model, or its `files.BEST_MODEL`. Raises UserError: it is not there
    or is no model of ours."""
    path = run / name
    if not os.path.lexists(path):
        what = "final" if name == files.FINAL_MODEL else "best"
        needs = "train it first" if what == "final" else "evaluation.keep=best_val keeps it"
        raise UserError(f"{path}: no such file; the run has no {what} model: {needs}")
    return _read(path)


def _all(run: Path) -> list[Path]:
    found = (run / files.CHECKPOINTS).glob("iteration-*.pt")
    return sorted((path for path in found if path.stem[10:].isdecimal()), key=_iteration)


def _iteration(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def write(path: Path, state: dict[str, Any]) -> None:
    """A state, or a model's alone, whole or not at all."""
    import torch  # noqa: PLC0415 - reading runs must not load it

    # Into memory first: on a full disk torch's own writer hides the OSError behind another one.
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    files.write_atomically(path, lambda stream: shutil.copyfileobj(buffer, stream))


def _read(path: Path, most: int = files.LARGEST) -> dict[str, Any]:
    import torch  # noqa: PLC0415

    try:
        with files.reading(path, most) as stream:
            _check_whole(stream)
            stream.seek(0)
            state = torch.load(stream, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for bytes that are no checkpoint
        words = first_line(error)
        raise UserError(f"{path}: cannot be read as a checkpoint ({words})") from None
    if not isinstance(state, dict):
        raise UserError(f"{path}: holds no checkpoint")
    return state


def _check_whole(stream: IO[bytes]) -> None:
    """Check every byte against the archive's checksums, which torch writes but does not read;
    nothing in it may be compressed, so that it holds no more than its own size."""
    with zipfile.ZipFile(stream) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise ValueError("it is compressed")
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged} in it is damaged")
