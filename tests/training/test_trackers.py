"""What TensorBoard's, MLflow's and W&B's own readers find of a run, and trackers at fault."""

import json
import os
import shutil
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import many, rows, signalled_at

from robustmd import cli
from robustmd.config.check import recorded_config
from robustmd.errors import UserError
from robustmd.runs import files
from robustmd.runs.reader import judge
from robustmd.runs.rerun import overrides
from robustmd.runs.writer import RunDirectory
from robustmd.trackers import NEEDS, TRACKERS, TrackedRun, numbers_of, tracker
from robustmd.training import plan as plan_module

Train = Callable[..., Any]
Curves = Mapping[str, list[tuple[int, float]]]


@pytest.fixture(autouse=True)
def nobody_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No account and no server of whoever runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("WANDB_", "MLFLOW_"))]:
        monkeypatch.delenv(name)


# --- the trackers' own readers --------------------------------------------------------------------


def tensorboard_curves(directory: Path) -> Curves:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    place = Path(".trackers", "tensorboard", *directory.parts[-4:])
    found = EventAccumulator(str(directory.parents[3] / place))
    found.Reload()
    tags = found.Tags()
    assert {"config/text_summary", "final/text_summary"} <= set(tags["tensors"])
    return {tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in tags["scalars"]}


def mlflow_curves(directory: Path) -> Curves:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{directory.parents[3]}/.trackers/mlflow/mlflow.db")
    (experiment,) = [e for e in client.search_experiments() if e.name == "digits_mini"]
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.params["method.name"] in ("opt", "even")
    assert {a.path for a in client.list_artifacts(run.info.run_id)} >= {"final.csv"}
    return {
        tag: [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, tag)]
        for tag in run.data.metrics
    }


def wandb_curves(directory: Path) -> Curves:
    place = directory.parents[3] / ".trackers/wandb/wandb"
    (file,) = place.glob("offline-run-*/run-*.wandb")
    found, records = defaultdict(list), []
    for _ in range(100):  # W&B's own process writes the file, and may end after ours went on
        records = [*wandb_records(file.read_bytes())]
        if any(record.WhichOneof("record_type") == "exit" for record in records):
            break
        time.sleep(0.1)
    for record in records:
        for item in record.history.item:
            value, tag = json.loads(item.value_json), item.key or "/".join(item.nested_key)
            if isinstance(value, float | int) and not tag.startswith("_"):
                found[tag].append((record.history.step.num, value))
    return found


def wandb_records(content: bytes) -> Iterator[Any]:
    """W&B's records from its file: a log in blocks, as LevelDB's, of its protocol buffers."""
    from wandb.proto.wandb_internal_pb2 import Record

    at, parts = 7, b""
    while at + 7 <= len(content):
        if 2**15 - at % 2**15 < 7:
            at += 2**15 - at % 2**15
            continue
        length, kind = struct.unpack_from("<HB", content, at + 4)
        parts += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = Record()
            record.ParseFromString(parts)
            yield record
            parts = b""


READERS = {
    "tensorboard": tensorboard_curves,
    "mlflow": mlflow_curves,
    "wandb": wandb_curves,
}


def check_curves(name: str, directory: Path) -> None:
    """Every tag has each of the files' numbers once, in order; float32 in TensorBoard."""
    kind = np.float32 if name == "tensorboard" else float
    expected: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    worst: dict[int, list[float]] = defaultdict(list)
    for row in rows(directory):
        at, place = int(row["iteration"]), f"{row['split']}/{row['domain']}"
        expected[f"{place}/loss"].append((at, kind(row["loss"])))
        expected[f"{place}/accuracy"].append((at, kind(row["accuracy"])))
        if row["split"] == "train":
            worst[at].append(kind(row["loss"]))
    for row in rows(directory, "weights.csv"):
        expected[f"weight/{row['domain']}"].append((int(row["iteration"]), kind(row["weight"])))
    found = READERS[name](directory)
    for tag, curve in expected.items():
        assert found[tag] == curve, tag
    assert found["worst/train/loss"] == [(at, max(losses)) for at, losses in worst.items()]
    assert [at for at, _ in found["worst/test/accuracy"]] == [0, 4, 8, 12]


# --- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", READERS)
def test_a_run_gone_on_with_is_one_run_without_doubled_steps(train: Train, name: str) -> None:
    pytest.importorskip(name)
    ours = f"tracking=[{name}]"
    with signalled_at(9):
        outcome = train("method=opt", ours)
    assert outcome.status == "interrupted"
    before = TrackedRun.of(RunDirectory(outcome.directory)).id
    newest = max((outcome.directory / "checkpoints").glob("iteration-*.pt"), key=str)
    newest.write_bytes(b"")  # as if it had been killed: what came after iteration 5 is made anew
    assert train("method=opt", ours).status == "finished"
    log = (outcome.directory / "train.log").read_text()
    assert "resumed after iteration 5" in log
    assert "tracking" not in log
    assert TrackedRun.of(RunDirectory(outcome.directory)).id == before
    check_curves(name, outcome.directory)
    assert cli.main(["track", str(outcome.directory.parents[3]), "--to", name]) == 0  # adds nothing
    check_curves(name, outcome.directory)


@pytest.mark.parametrize("name", READERS)
def test_finished_runs_are_sent_afterwards_with_their_models(
    train: Train, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(name)
    outcome = train()
    root = outcome.directory.parents[3]
    copy = outcome.directory.with_name("seed=1")
    shutil.copytree(outcome.directory, copy)
    (copy / "metrics.csv").unlink()
    assert cli.main(["track", str(root), "--to", name, "--model"]) == 0
    assert "1 sent, 0 failed; 1 runs left out" in capsys.readouterr().out
    check_curves(name, outcome.directory)
    if name != "tensorboard":  # which has no place for files
        assert name == "wandb" or list(root.glob(".trackers/mlflow/artifacts/*/*/final.pt"))


def test_a_tracker_of_ones_own_is_told_once_of_everything(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    class Own:
        def __init__(self, run: TrackedRun) -> None:
            self.run = run

        def log(self, steps: Any) -> None:
            told.extend(steps)

        def end(self, status: str, table: Any, files: Mapping[str, Path]) -> None:
            told.append((status, table.loc["b", "train loss"], [*files], self.run))

    monkeypatch.setitem(TRACKERS, "own", None)  # for the time of the test
    monkeypatch.setitem(NEEDS, "own", None)
    del TRACKERS["own"]
    tracker("own")(Own)
    with pytest.raises(UserError, match="has that name"):
        tracker("own")(Own)
    outcome = train("tracking=[own]", "tracking_model=true", "evaluation.metrics=[ece]")
    *steps, (status, loss, names, run) = told
    iterations = [at for at, _ in steps]
    assert iterations == sorted(iterations)
    assert set(iterations) == {0, 1, 3, 4, 6, 8, 9, 12}
    assert sum("train/b/ece" in found for _, found in steps) == 4
    assert (status, names) == ("finished", ["final.pt"])
    record, _ = judge(outcome.directory, outcome.directory)
    assert record is not None
    assert loss == pytest.approx(record.loss("train", "b"), abs=1e-4)
    assert run.name == "/".join(outcome.directory.parts[-4:])
    assert run.config["method.lam"] == record.lam


def test_unseen_domains_are_apart_and_what_is_not_finite_is_not_there(train: Train) -> None:
    asked = ("data=folder", "data.unseen=[d2]", "training.domains_per_batch=1")
    directory = RunDirectory(train(*asked, data=many(3)).directory)
    numbers = dict(numbers_of(directory))
    last = numbers[12]
    assert "unseen/test/d2/loss" in last
    assert "test/d2/loss" not in last
    losses = [last["test/d0/loss"], last["test/d1/loss"]]
    assert last["worst/test/loss"] == max(losses)
    assert last["unseen/worst/test/loss"] == last["unseen/test/d2/loss"]
    assert sum(tag.startswith("batch_loss/") for tag in last) == 1  # the other was not drawn
    later = [at for at, _ in numbers_of(directory, after=4)]
    assert later == sorted(at for at in numbers if at > 4)


# --- faults ---------------------------------------------------------------------------------------


class Faulty:
    """Fails where `at` says."""

    at = ""

    def _at(self, here: str) -> None:
        if self.at == here:
            raise SystemExit(f"no server\nat {here}")

    def __init__(self, run: TrackedRun) -> None:
        self._at("begin")

    def log(self, steps: Any) -> None:
        self._at("log")

    def end(self, *_: Any) -> None:
        self._at("end")


@pytest.mark.parametrize("at", ["begin", "log", "end"])
def test_a_tracker_at_fault_costs_one_line_and_no_run(
    train: Train, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    monkeypatch.setitem(TRACKERS, "faulty", Faulty)
    monkeypatch.setitem(NEEDS, "faulty", "")
    monkeypatch.setattr(Faulty, "at", at)
    outcome = train("tracking=[faulty]")
    assert (outcome.status, outcome.exit_code) == ("finished", 0)
    warnings = [
        line
        for line in (outcome.directory / "train.log").read_text().splitlines()
        if "tracking" in line
    ]
    assert len(warnings) == 1
    assert "SystemExit: no server)" in warnings[0]
    assert f"robustmd track {outcome.directory} --to faulty" in warnings[0]


def test_a_full_disk_of_the_trackers_is_no_fault_of_the_run(
    train: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither is a folder that a symbolic link leads out of."""
    monkeypatch.setitem(TRACKERS, "placed", Placed)
    monkeypatch.setitem(NEEDS, "placed", "")
    plain = train(outputs=tmp_path / "plain")
    (tmp_path / "outputs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "outputs/.trackers").symlink_to(tmp_path / "elsewhere")
    write = RunDirectory.write_record
    monkeypatch.setattr(RunDirectory, "write_record", _refusing(write))
    first = train("tracking=[placed]")
    assert "(OSError: No space left); once" in (first.directory / "train.log").read_text()
    monkeypatch.setattr(RunDirectory, "write_record", write)
    second = train("tracking=[placed]", "seed=1")
    assert "a symbolic link on the way" in (second.directory / "train.log").read_text()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert rows(plain.directory) == rows(first.directory)
    assert plain.directory.parts[-4:] == first.directory.parts[-4:]


class Placed:
    def __init__(self, run: TrackedRun) -> None:
        run.folder("placed", "deeper").joinpath("file").touch()


def _refusing(write: Callable[..., None]) -> Callable[..., None]:
    def refuse(self: RunDirectory, name: str, record: Any) -> None:
        if name == files.TRACKING:
            raise OSError("No space left")
        write(self, name, record)

    return refuse


def test_a_tracker_that_is_not_there_is_a_line_before_any_work(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "load_domains", None)
    monkeypatch.setattr("robustmd.trackers.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"tracker mlflow: .*pip install 'mlflow-skinny>=3'"):
        train("tracking=[mlflow]")
    with pytest.raises(UserError, match="tracker comet: there is none; allowed: tensorboard, mlf"):
        train("tracking=[comet]")
    with pytest.raises(UserError, match=r"must be a list of trackers, as \[tensorboard,mlflow\]"):
        train("tracking=mlflow")


def test_no_record_of_a_run_sends_another_one_anywhere(train: Train) -> None:
    outcome = train()
    config = RunDirectory(outcome.directory).record(files.CONFIG)
    assert config is not None
    config |= {"tracking": ["wandb"], "tracking_model": True}
    assert recorded_config(config).tracking == []
    assert not any("tracking" in text for text in overrides(config, {}))
    typed_in = {"overrides": ["seed=0", "tracking=[wandb]"]}
    assert overrides(config, typed_in) == ["seed=0"]
    (outcome.directory / files.TRACKING).write_text('{"token": "of another run"}')
    copy = outcome.directory.with_name("seed=7")
    shutil.copytree(outcome.directory, copy)
    ids = {TrackedRun.of(RunDirectory(path)).id for path in (outcome.directory, copy)}
    assert len(ids) == 2
