"""Weights & Biases: online for whoever has logged in, else files for `wandb sync`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robustmd.errors import UserError
from robustmd.trackers.tracker import Step, TrackedRun, tracker


@tracker("wandb", needs="wandb")
class WandB:
    """An offline file cannot be gone on with: each try of a run writes one from the beginning, in
    place of the last. Online, W&B says how far it is."""

    def __init__(self, run: TrackedRun) -> None:
        import wandb  # noqa: PLC0415 - an extra

        mode = _mode(wandb)
        if mode == "offline":
            for earlier in run.folder("wandb", "wandb").glob(f"offline-run-*-{run.id}"):
                shutil.rmtree(earlier)
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "robustmd"),
            id=run.id,
            name=run.name,
            group=run.name.rpartition("/")[0],  # whose members are its seeds
            tags=[run.experiment],
            config=dict(run.config),
            dir=run.folder("wandb"),
            mode=mode,
            resume="allow",
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True, save_code=False, disable_git=True),
        )
        self._last = 0

    def log(self, steps: Sequence[Step]) -> None:
        for iteration, numbers in steps:
            self._last = iteration
            if iteration >= self._run.starting_step:
                self._run.log(dict(numbers), step=iteration)

    def end(self, status: str, table: Any, files: Mapping[str, Path]) -> None:
        import wandb  # noqa: PLC0415

        shown: dict[str, Any] = {}
        if table is not None:
            shown["final"] = wandb.Table(dataframe=table.rename_axis("domain").reset_index())
        if "examples.png" in files:
            shown["examples"] = wandb.Image(str(files["examples.png"]))
        self._run.log(shown, step=self._last)
        if "final.pt" in files:
            model = wandb.Artifact(f"model-{self._run.id}", type="model")
            model.add_file(str(files["final.pt"]))
            self._run.log_artifact(model)
        self._run.finish(exit_code=int(status != "finished"))


def _mode(wandb: Any) -> Any:
    """WANDB_MODE, else online where somebody has logged in; nobody is asked to.

    Raises UserError: it says online, and nobody has."""
    mode = os.environ.get("WANDB_MODE", "")
    if mode not in ("", "online"):
        return "offline" if mode == "dryrun" else mode
    is_known = wandb.login(prompt=False)
    if mode and not is_known:
        raise UserError("WANDB_MODE=online: nobody has logged in; do so with `wandb login`")
    return "online" if is_known else "offline"
