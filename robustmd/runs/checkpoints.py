"""Checkpoints in a run directory: whole or not there, the last two kept, loaded as data only."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path
from typing import Any

from robustmd.errors import UserError
from robustmd.runs import files

KEPT = 2


def save(run: Path, iteration: int, state: dict[str, Any]) -> None:
    """Write `checkpoints/iteration-<n>.pt`, then drop all but the last two."""
    folder = run / files.CHECKPOINTS
    _write(folder / f"iteration-{iteration:08d}.pt", state)
    for old in _all(folder)[:-KEPT]:
        old.unlink()


def newest(run: Path) -> dict[str, Any] | None:
    """The last checkpoint that can be read, on the CPU; None where there is none."""
    for path in reversed(_all(run / files.CHECKPOINTS)):
        with contextlib.suppress(UserError):
            return _read(path)
    return None


def save_final_model(run: Path, model_state: dict[str, Any]) -> None:
    """Keep the final model; the checkpoints stay until the run is known to be finished."""
    _write(run / files.CHECKPOINTS / files.FINAL_MODEL, model_state)


def drop(run: Path) -> None:
    """Remove the checkpoints of a finished run; its final model stays."""
    for old in _all(run / files.CHECKPOINTS):
        old.unlink()


def load_final_model(run: Path) -> dict[str, Any]:
    """The finished run's model.

    Raises:
        UserError: it is not there or is no model of ours.
    """
    path = run / files.CHECKPOINTS / files.FINAL_MODEL
    if not path.is_file():
        raise UserError(f"{path}: no such file; the run has no final model: train it first")
    return _read(path)


def _all(folder: Path) -> list[Path]:
    return sorted(folder.glob("iteration-*.pt"))


def _write(path: Path, state: dict[str, Any]) -> None:
    import torch  # noqa: PLC0415 - reading runs must not load it

    # Into memory first: on a full disk torch's own writer hides the OSError behind another one.
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    files.write_atomically(path, lambda stream: shutil.copyfileobj(buffer, stream))


def _read(path: Path) -> dict[str, Any]:
    import torch  # noqa: PLC0415

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for bytes that are no checkpoint
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: cannot be read as a checkpoint ({words})") from None
    if not isinstance(state, dict):
        raise UserError(f"{path}: holds no checkpoint")
    return state
