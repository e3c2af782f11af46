"""A run that was trained, from Python: its tables, its model, its predictions."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import nn

from robustmd.config.check import recorded_config
from robustmd.config.loading import load_domains
from robustmd.domains.image_files import decode
from robustmd.errors import UserError, printable
from robustmd.registry import FROM_PYTHON, BackboneFacts
from robustmd.runs import files
from robustmd.runs.reader import collect, judge
from robustmd.runs.run import Run as Record
from robustmd.runs.untrusted import Unreadable, read_frame
from robustmd.training.data import normalised
from robustmd.training.evaluate import MODELS, run_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Model = nn.Module | Callable[..., nn.Module]  # or what makes it
AT_ONCE = 256  # images in one forward pass


def load_run(path: str | Path, module: Model | None = None) -> Run:
    """The run in a directory, `outputs/<data>/<method>/<8 hex>/seed=<n>`, finished or not.

    Args:
        path: the directory.
        module: the model that was given to `train`, if one was: the module, or what makes it.

    Raises:
        UserError: it is none, or its files are damaged.
    """
    path = Path(path).expanduser()
    if not (path / files.CONFIG).exists():
        what = "it has no config.yaml" if path.is_dir() else "no such folder"
        raise UserError(
            f"{path}: no run directory ({what}); `robustmd runs FOLDER` lists those in a folder"
        )
    record, problems = judge(path, path)
    if record is None:
        record = problems[0].run
        if record is None or record.status == "finished":
            raise UserError(f"{path}: {problems[0].reason}")
    return Run(record, module)


def load_runs(outputs: str | Path = "outputs") -> list[Run]:
    """Every finished, sound run below a folder, in the order of their paths.

    Raises:
        UserError: there is no such folder.
    """
    return [Run(record) for record in collect(Path(outputs).expanduser()).runs]


class Run:
    """One run: its record, its tables and its model. `train` and `load_run` make them."""

    def __init__(self, record: Record, given: Model | None = None) -> None:
        self.record, self._given = record, given

    @property
    def path(self) -> Path:
        """The run's directory."""
        return self.record.path

    @property
    def status(self) -> str:
        """finished, running, interrupted, failed or diverged, as the run itself recorded it."""
        return self.record.status

    @property
    def config(self) -> dict[str, Any]:
        """Its config.yaml."""
        return self.record.config

    @property
    def summary(self) -> dict[str, Any]:
        """Its summary.json."""
        return self.record.summary

    @property
    def metrics(self) -> pd.DataFrame:
        """metrics.csv: a row for each measurement, split and domain; the mean loss, accuracy in
        percent (NaN where labels are numbers)."""
        return self._table(files.METRICS)

    @property
    def weights(self) -> pd.DataFrame:
        """weights.csv: a row for each logged iteration and domain that trains; the weight p_k and
        the batch's loss (NaN where the domain was not drawn)."""
        return self._table(files.WEIGHTS)

    def _table(self, name: str) -> pd.DataFrame:
        try:
            return read_frame(self.path / name)
        except Unreadable as reason:
            raise UserError(f"{self.path}: {reason}") from None

    def model(self, which: Literal["last", "best"] = "last") -> nn.Module:
        """The final model on the CPU, in evaluation mode, or that of its best validation.

        It takes float [n, 3, H, W] whose pixels are (u − 0.5)/0.25, u = pixel/255 (or features
        or tokens [n, …]), and gives logits [n, C].

        Args:
            which: "best" is there where `evaluation.keep=best_val` kept it.

        Raises:
            UserError: the run has no such model, or one that is not its own.
        """
        config = recorded_config(self.config)
        if config.backbone.name == FROM_PYTHON:
            config.backbone.given = self._given
        facts = BackboneFacts(len(self._classes()), self._image_size())
        if which not in MODELS:
            raise UserError(f"model({which!r}): must be one of {', '.join(MODELS)}")
        return run_model(self.path, config.backbone, facts, MODELS[which]).eval()

    def predict(self, images: Any) -> np.ndarray:
        """Probabilities, float32 [n, C], of the classes in the order of `summary["classes"]`; of a
        run whose labels are numbers the model's outputs.

        Args:
            images: uint8 [n, H, W, 3] of the size that the data set keeps or the model sees, whose
                centre is taken; or paths of image files; or features, floating point [n, …], or
                tokens, integers [n, …].

        Raises:
            UserError: they are of another shape or type, or a file cannot be read.
        """
        model = self.model()
        with torch.inference_mode():
            parts = [model(part) for part in self._inputs(images).split(AT_ONCE)]
        outputs = torch.cat(parts)
        return (outputs if self.record.are_numbers else outputs.softmax(1)).numpy()

    def plot(self) -> Figure:
        """The domains' training losses and the adversary's weights over the iterations, a picture
        in a notebook."""
        from robustmd.report import figures  # noqa: PLC0415 - takes a second

        metrics, weights = self.metrics, self.weights
        order = [*self.record.domains, *self.record.unseen]
        losses = metrics[metrics.split == "train"].pivot_table("loss", "iteration", "domain")
        parts = (
            (losses, f"training loss{self.record.loss_name.bracket}"),
            (weights.pivot_table("weight", "iteration", "domain"), "weight"),
        )
        with figures.figure_style():
            figure, panels = figures.grid(self.record.data or "", 2, 2, (4.2, 2.9))
            handles = {}
            for axes, (table, what) in zip(panels, parts, strict=True):
                for name in filter(table.columns.__contains__, order):
                    look = figures.domain_style(order.index(name)) | {
                        "markevery": max(1, len(table) // 8)
                    }
                    (handles[name],) = axes.plot(table.index, table[name], **look)
                axes.set(xlabel="iteration", ylabel=what)
            figures.add_legend(figure, handles)
        figure._repr_png_ = lambda: figures.image_bytes(figure, "png")  # type: ignore[attr-defined]
        return figure

    def export(
        self, kind: Literal["onnx", "torch-export"] = "onnx", out: str | Path | None = None
    ) -> Path:
        """Write the model with its scaling of pixels, images -> logits, and check that the file
        gives what the model gives.

        Args:
            kind: "onnx" needs the extra `export`.
            out: the file; None: `model.onnx` or `model.pt2` in the working folder.

        Raises:
            UserError: it cannot be exported or written, or gives other numbers.
        """
        from robustmd.export import Inputs, export  # noqa: PLC0415 - few need it

        inputs = Inputs(self._image_size(), self._takes_tokens())
        return export(self.model(), inputs, kind, None if out is None else Path(out))

    def _classes(self) -> list[str]:
        classes = self.summary.get("classes")
        if not isinstance(classes, list) or not classes:
            raise UserError(f"{self.path}: its summary.json names no classes")
        return classes

    def _takes_tokens(self) -> bool:
        return self.summary.get("tokens") is True

    def _image_size(self) -> tuple[int, ...]:
        """(H, W) of what the model sees, or (1, …) of features [n, …]; a run of before it was
        recorded loads its data."""
        found = self.summary.get("image_size")
        if found is None:
            return load_domains(recorded_config(self.config), lambda _: None).image_size
        if not (isinstance(found, list) and len(found) > 1 and all(type(n) is int for n in found)):
            raise UserError(f"{self.path}: its summary.json names no image size")
        return tuple(found)

    def _inputs(self, images: Any) -> torch.Tensor:
        """What the model takes, from what a user has."""
        size, tokens = self._image_size(), self._takes_tokens()
        height, width = size[:2]
        if isinstance(images, str | Path):
            images = [images]
        if isinstance(images, list | tuple) and all(isinstance(one, str | Path) for one in images):
            images = _read(images, int(self.config["data"].get("size") or height))
        array = np.asarray(images.detach().cpu() if hasattr(images, "detach") else images)
        if size == (1, *array.shape[1:]) and array.dtype.kind in ("iu" if tokens else "fiu"):
            return torch.from_numpy(array.astype(np.int64 if tokens else np.float32))
        if tokens or len(size) > 2:
            what, needed = ("tokens", "integers") if tokens else ("features", "floating point")
            raise UserError(
                f"{what} are {array.dtype} {list(array.shape)}; needed are {needed} [n, "
                f"{', '.join(map(str, size[1:]))}]"
            )
        if array.dtype != np.uint8 or array.ndim != 4 or array.shape[3] != 3:
            margins = [-1, -1]
        else:
            margins = [array.shape[1] - height, array.shape[2] - width]
        if min(margins) < 0:
            raise UserError(
                f"images are {array.dtype} {list(array.shape)}; needed are uint8 [n, {height}, "
                f"{width}, 3], or paths of image files"
            )
        top, left = (margin // 2 for margin in margins)
        seen = np.ascontiguousarray(array[:, top : top + height, left : left + width])
        return normalised(torch.from_numpy(seen))

    def __repr__(self) -> str:
        return f"{self._head()}\n{self.final.to_string()}" if self.record.final else self._head()

    def _repr_html_(self) -> str:
        table = self.final.to_html() if self.record.final else ""
        return f"<p>{html.escape(self._head())}</p>{table}"

    def _head(self) -> str:
        done = self.summary.get("iterations_done")
        place = "/".join(self.path.resolve().parts[-4:])
        return printable(f"Run {place}: {self.status}, {done} iterations")

    @property
    def final(self) -> pd.DataFrame:
        """A row for each domain: final losses (`summary["loss"]` names one of your own, else nats),
        accuracies (%) and the last weight; no columns but that before the run has finished."""
        weights = self.summary.get("weights")
        rows = {
            printable(name): {
                **{
                    f"{split} {what}": round(getattr(of[name], what), 4)
                    for split, of in self.record.final.items()
                    for what in ("loss", "accuracy")
                    if getattr(of[name], what) is not None
                },
                "weight": weights.get(name) if isinstance(weights, dict) else None,
            }
            for name in self.record.measured
        }
        return pd.DataFrame.from_dict(rows, orient="index")


def _read(paths: Sequence[str | Path], size: int) -> np.ndarray:
    """uint8 [n, size, size, 3], prepared as `data=folder` prepares its files."""
    found = []
    for path, image in zip(paths, decode([Path(p).expanduser() for p in paths], size), strict=True):
        if isinstance(image, str):
            raise UserError(f"{path}: cannot be read ({image})")
        found.append(image)
    return np.stack(found) if found else np.empty((0, size, size, 3), np.uint8)


def export_run(path: Path, kind: Literal["onnx", "torch-export"], out: Path | None) -> int:
    """`robustmd export`: write the run's model to a file and say where. Raises UserError."""
    written = load_run(path).export(kind, out)
    print(f"written: {written}; it gives the model's logits")  # noqa: T201
    return 0
