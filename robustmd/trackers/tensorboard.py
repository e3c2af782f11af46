"""TensorBoard: event files in `<outputs>/.trackers/tensorboard`, a folder for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robustmd.trackers.tracker import Step, TrackedRun, tracker


@tracker("tensorboard", needs="tensorboard")
class TensorBoard:
    """Each try of a run writes a file, which has the run from its beginning and says that what
    earlier files hold is void: readers then show it alone. Numbers are float32 there."""

    def __init__(self, run: TrackedRun) -> None:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an extra

        folder = run.folder("tensorboard", *run.name.split("/"))
        self._writer, self._last = SummaryWriter(str(folder), purge_step=0), 0
        self._text("config", "\n".join(f"{key}: {value}" for key, value in run.config.items()))

    def log(self, steps: Sequence[Step]) -> None:
        for iteration, numbers in steps:
            for tag, value in numbers.items():
                self._writer.add_scalar(tag, value, iteration)
            self._last = iteration
        self._writer.flush()

    def end(self, status: str, table: Any, files: Mapping[str, Path]) -> None:
        if table is not None:
            self._text("final", table.to_string())
        if "examples.png" in files:
            import numpy as np  # noqa: PLC0415
            from PIL import Image  # noqa: PLC0415

            with Image.open(files["examples.png"]) as image:
                pixels = np.asarray(image.convert("RGB"))
            self._writer.add_image("examples", pixels, self._last, dataformats="HWC")
        self._writer.close()

    def _text(self, tag: str, text: str) -> None:
        code = "\n".join(f"    {line}" for line in text.splitlines())  # in Markdown
        self._writer.add_text(tag, code, self._last)
