"""Trackers: where the numbers of a run go beside its directory, after each measurement.

A tracker is told what is on the disk, and one that fails costs a line. docs/trackers.md says what
goes where.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import secrets
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from robustmd.config.identity import flattened
from robustmd.errors import Say, UserError, first_line, printable
from robustmd.extras import install, required
from robustmd.metrics import MEASURED, worst
from robustmd.registry import METRICS, checked
from robustmd.runs import files
from robustmd.runs.reader import collect, judge
from robustmd.runs.run import unseen_domains
from robustmd.runs.untrusted import Missing, read_record, read_table
from robustmd.runs.writer import RunDirectory

Step = tuple[int, Mapping[str, float]]  # iteration, {tag: finite number}
Kind = TypeVar("Kind", bound=type[Any])


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

    @classmethod
    def of(cls, directory: RunDirectory) -> TrackedRun:
        """Its id is made of tracking.json, which is written if need be, and of its name: the file
        of a stranger's run leads to no other run of a tracker's. Raises Unreadable, OSError."""
        config = read_record(directory.path / files.CONFIG)
        try:
            token = read_record(directory.path / files.TRACKING).get("token")
        except Missing:
            token = secrets.token_hex(8)
            directory.write_record(files.TRACKING, {"token": token})
        path = directory.path.absolute()
        name = "/".join(path.parts[-4:])
        number = hashlib.sha256(f"{token} {name}".encode()).hexdigest()[:16]
        experiment = (directory.record(files.ENVIRONMENT) or {}).get("experiment")
        settings = dict(pair for key, value in config.items() for pair in flattened(value, key))
        return cls(number, name, experiment or settings["data.name"], settings, path.parents[3])

    def folder(self, *parts: str) -> Path:
        """`<outputs>/.trackers/<parts>`, made. Raises OSError: a symbolic link leads elsewhere."""
        path = self.outputs.resolve().joinpath(".trackers", *parts)
        if path.resolve() != path:
            raise OSError(f"{path}: a symbolic link on the way leads elsewhere; remove it")
        path.mkdir(parents=True, exist_ok=True)
        return path


TRACKERS: dict[str, Callable[[TrackedRun], Any]] = {}
NEEDS: dict[str, str] = {}


def tracker(name: str, *, needs: str = "") -> Callable[[Kind], Kind]:
    """Register `tracking=[<name>]`: a class that is made of a `TrackedRun`, with two methods.

    `log(steps)` takes [(iteration, {tag: number})], ascending, after each measurement. A run that
    goes on is told from its first iteration again: take nothing twice. `end(status, table, files)`
    is called when a run, or this try of it, is over; table: a DataFrame with a row for each domain,
    None if it has not finished; files: {name: path} of final.pt, where asked for. All of it may
    raise: the run goes on without the tracker.

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
            raise UserError(f"tracker {name}: {needs} is not installed; {install(required(name))}")


def numbers_of(directory: RunDirectory, after: int = -1) -> list[Step]:
    """What the directory's tables hold of later iterations, ascending: the finite numbers by tag.

    Tags: `train/a/loss`, `train/a/accuracy` of each split and domain, `worst/train/loss`, …, with
    `unseen/` before those of unseen domains; `weight/a`, `batch_loss/a`. Raises Unreadable.
    """
    summary, config = (directory.record(name) or {} for name in (files.SUMMARY, files.CONFIG))
    unseen = unseen_domains(config, summary)
    numbers: dict[int, dict[str, Any]] = defaultdict(dict)
    over_domains: dict[tuple[int, str, str], list[float]] = defaultdict(list)
    for iteration, domain, weight, loss in read_table(directory.path / files.WEIGHTS):
        numbers[iteration] |= {f"weight/{domain}": weight, f"batch_loss/{domain}": loss}
    rows = [
        (iteration, split, domain, metric, value)
        for iteration, _, split, domain, *values, _ in read_table(directory.path / files.METRICS)
        for metric, value in zip(MEASURED, values, strict=True)
    ]
    if (directory.path / files.MEASURES).exists():
        rows += read_table(directory.path / files.MEASURES)
    for iteration, split, domain, metric, value in rows:
        apart = "unseen/" if domain in unseen else ""
        numbers[iteration][f"{apart}{split}/{domain}/{metric}"] = value
        if metric in MEASURED and value is not None:
            over_domains[iteration, f"{apart}worst/{split}", metric].append(value)
    for (iteration, place, metric), values in over_domains.items():
        numbers[iteration][f"{place}/{metric}"] = float(worst(values, METRICS[metric].better))
    return [
        (at, {tag: x for tag, x in by_tag.items() if x is not None and math.isfinite(x)})
        for at, by_tag in sorted(numbers.items())
        if at > after
    ]


class Trackers:
    """The trackers of one run. Within a `with`, `tell` sends what was measured since; at its end
    they are told how the run ended.

    say: is told of a tracker that fails, once. model: final.pt is sent too.
    """

    def __init__(
        self, directory: RunDirectory, names: Sequence[str], say: Say, model: bool
    ) -> None:
        self._directory, self._say, self._model = directory, say, model
        self._told = dict.fromkeys(names, -1)  # the last iteration that each was told
        self._made: dict[str, Any] = {}

    def __enter__(self) -> Trackers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, Exception):  # nobody waits at a second Ctrl-C
            self.tell()
            self._each(self._end)

    def tell(self) -> None:
        """Send the numbers of the iterations since the last call."""
        self._each(self._log)

    def _log(self, name: str) -> None:
        if name not in self._made:
            self._made[name] = TRACKERS[name](TrackedRun.of(self._directory))
        steps = numbers_of(self._directory, self._told[name])
        self._made[name].log(steps)
        self._told[name] = steps[-1][0] if steps else self._told[name]

    def _end(self, name: str) -> None:
        from robustmd.trained_run import Run  # noqa: PLC0415 - which imports what imports this

        record, _ = judge(self._directory.path, self._directory.path)
        status = str((self._directory.record(files.SUMMARY) or {}).get("status"))
        model = self._directory.path / files.FINAL_MODEL
        sent = {model.name: model} if self._model and model.exists() else {}
        for path in sent.values():
            files.reading(path).close()  # refuses a link
        self._made[name].end(status, Run(record).final if record else None, sent)

    def _each(self, call: Callable[[str], None]) -> None:
        for name in list(self._told):
            try:
                call(name)
            except (Exception, SystemExit) as error:  # of another program, of any kind
                del self._told[name]
                self._say(
                    f"warning: tracking=[{name}] failed ({type(error).__name__}: "
                    f"{first_line(error)}); once the run has finished "
                    f"`robustmd track {self._directory.path} --to {name}` sends it"
                )


def track(outputs: Path, to: str, model: bool) -> int:
    """`robustmd track`: send every finished run to the trackers `to`, with commas between. Returns
    0, or 1 where a run could not be sent. Raises UserError."""
    names = to.split(",")
    check_trackers(names)
    collection, failures = collect(outputs), list[str]()
    for run in collection.runs:
        with Trackers(RunDirectory(run.path), names, failures.append, model):
            pass  # all is told at its end
    for line in failures:
        print(f"robustmd: {printable(line)}", file=sys.stderr)  # noqa: T201
    left_out = sum(problem.scope == "run" for problem in collection.problems)
    sent = len(collection.runs) * len(names) - len(failures)
    print(  # noqa: T201
        f"{sent} sent, {len(failures)} failed; {left_out} runs left out: not finished, or unsound"
    )
    return 1 if failures else 0


# --- the three that come with the package --------------------------------------------------------


@tracker("tensorboard", needs="tensorboard")
class TensorBoard:
    """Event files in `<outputs>/.trackers/tensorboard`, a folder for each run. Each try of a run
    writes a file, which has the run from its beginning and says that earlier files are void."""

    def __init__(self, run: TrackedRun) -> None:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an extra

        folder = run.folder("tensorboard", *run.name.split("/"))
        self._writer = SummaryWriter(str(folder), purge_step=0)
        self._text("config", "\n".join(f"{key}: {value}" for key, value in run.config.items()))

    def log(self, steps: Sequence[Step]) -> None:
        for iteration, numbers in steps:
            for tag, value in numbers.items():
                self._writer.add_scalar(tag, value, iteration)
        self._writer.flush()

    def end(self, status: str, table: Any, files: Mapping[str, Path]) -> None:
        if table is not None:
            self._text("final", table.to_string())
        self._writer.close()

    def _text(self, tag: str, text: str) -> None:
        self._writer.add_text(tag, f"```\n{text}\n```")


@tracker("mlflow", needs="mlflow")
class MLflow:
    """The server of MLFLOW_TRACKING_URI, else `<outputs>/.trackers/mlflow/mlflow.db`. A run of ours
    is one of MLflow's, with the tag `robustmd.id`: each try of it takes the place of the last."""

    STATUS: Mapping[str, str] = {"finished": "FINISHED", "failed": "FAILED", "diverged": "FAILED"}
    METRICS, PARAMS, LONGEST = 1000, 100, 6000  # at most in a request, and letters of a value

    def __init__(self, run: TrackedRun) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
        from mlflow import MlflowClient  # noqa: PLC0415 - an extra
        from mlflow.entities import Param  # noqa: PLC0415

        local, server = run.folder("mlflow"), os.environ.get("MLFLOW_TRACKING_URI")
        # Runs side by side make neither its tables nor an experiment twice.
        with FileLock(local / "lock"):
            self._client = MlflowClient(server or f"sqlite:///{local}/mlflow.db?timeout=60")
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or run.experiment
            known = self._client.get_experiment_by_name(name)
            place = None if server else (local / "artifacts").as_uri()
            number = known.experiment_id if known else self._client.create_experiment(name, place)
        for earlier in self._client.search_runs([number], f"tags.`robustmd.id` = '{run.id}'"):
            self._client.delete_run(earlier.info.run_id)
        tags = {"robustmd.id": run.id}
        self._id = self._client.create_run(number, None, tags, run.name).info.run_id
        settings = [Param(_allowed(k), str(x)[: self.LONGEST]) for k, x in run.config.items()]
        for start in range(0, len(settings), self.PARAMS):
            self._client.log_batch(self._id, params=settings[start : start + self.PARAMS])

    def log(self, steps: Sequence[Step]) -> None:
        from mlflow.entities import Metric  # noqa: PLC0415

        now = int(1000 * time.time())
        metrics = [
            Metric(_allowed(k), x, now, t) for t, numbers in steps for k, x in numbers.items()
        ]
        for start in range(0, len(metrics), self.METRICS):
            self._client.log_batch(self._id, metrics=metrics[start : start + self.METRICS])

    def end(self, status: str, table: Any, files: Mapping[str, Path]) -> None:
        if table is not None:
            self._client.log_text(self._id, table.to_csv(), "final.csv")
        for path in files.values():
            self._client.log_artifact(self._id, str(path))
        self._client.set_terminated(self._id, self.STATUS.get(status, "KILLED"))


def _allowed(name: str) -> str:
    """The same with each letter that MLflow refuses in a name as its number in hex."""
    return re.sub(r"[^/\w.\- :]", lambda found: f"_{ord(found[0]):x}", name)


@tracker("wandb", needs="wandb")
class WandB:
    """Weights & Biases: online for whoever has logged in, else files for `wandb sync`. An offline
    file cannot be gone on with: each try of a run writes one from the beginning, in place of the
    last. Online, W&B says how far it is."""

    def __init__(self, run: TrackedRun) -> None:
        import wandb  # noqa: PLC0415 - an extra

        mode = os.environ.get("WANDB_MODE")
        if not mode:
            mode = "online" if wandb.login(prompt=False) else "offline"
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

    def log(self, steps: Sequence[Step]) -> None:
        for iteration, numbers in steps:
            if iteration >= self._run.starting_step:
                self._run.log(dict(numbers), step=iteration)

    def end(self, status: str, table: Any, files: Mapping[str, Path]) -> None:
        import wandb  # noqa: PLC0415

        if table is not None:
            self._run.log(
                {"final": wandb.Table(dataframe=table.rename_axis("domain").reset_index())}
            )
        for path in files.values():
            model = wandb.Artifact(f"model-{self._run.id}", type="model")
            model.add_file(str(path))
            self._run.log_artifact(model)
        self._run.finish(exit_code=int(status != "finished"))
