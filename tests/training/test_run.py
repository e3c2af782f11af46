"""Whole runs on tiny domains: what is written, what is kept, what is refused, what goes on."""

import errno
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from tiny import ADAMW, assert_same_rows, rows, signalled_at, summary, synthetic_domains

from robustmd.domains import DomainSet
from robustmd.errors import UserError
from robustmd.registry import METHODS
from robustmd.runs import files
from robustmd.training import learner as learner_module
from robustmd.training import run as run_module

Train = Callable[..., Any]


NEEDS = {  # what a method cannot do without in a run of 12 iterations
    "best_response": ["method.every=4"],
    "dwa": ["method.every=2"],
    "oracle": ["method.every=4"],
    "regret": ["method.reference=[0.1,0.2]"],
    "retrain": ["method.weights=[0.25,0.75]"],
}


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_trains_and_writes_a_whole_directory(train: Train, method: str) -> None:
    outcome = train(f"method={method}", *NEEDS.get(method, []))
    assert (outcome.status, outcome.exit_code) == ("finished", 0)
    found = summary(outcome.directory)
    assert found["status"] == "finished"
    assert found["iterations_done"] == 12
    weights = found["weights"].values()
    assert sum(weights) == pytest.approx(1, abs=1e-6)
    metrics = rows(outcome.directory)
    splits = {row["split"] for row in metrics}
    returns_average = method in ("minimax", "afl")
    averaged = {"train_averaged", "test_averaged"} if returns_average else set()
    assert splits == {"train", "test"} | averaged
    assert {row["iteration"] for row in metrics if row["split"] == "train"} == {
        "0",
        "4",
        "8",
        "12",
    }
    last = [row for row in metrics if row["iteration"] == "12" and row["split"] == "train"]
    assert ("weights_averaged" in found) == returns_average
    assert found["worst"]["train"]["loss"] == max(float(row["loss"]) for row in last)
    assert found["worst"]["train"]["accuracy"] == min(float(row["accuracy"]) for row in last)
    config = yaml.safe_load((outcome.directory / "config.yaml").read_text())
    assert config["method"]["name"] == method
    assert outcome.directory.parts[-4:-2] == ("digits_mini", method)
    seconds = found["seconds"]
    assert 0 < seconds["adversary"] < seconds["training"] < seconds["total"]
    assert seconds["measurement"] > 0
    if method in ("opt", "kl"):  # whose bound is proved
        assert found["regret"]["updates"] == 12
        assert found["regret"]["measured"] <= found["regret"]["bound"] + 1e-12


def test_weights_rows_are_what_the_iterations_used(train: Train) -> None:
    outcome = train("method=opt", "method.lam=0.1")
    found = rows(outcome.directory, "weights.csv")
    assert [row["iteration"] for row in found[::2]] == ["1", "3", "6", "9", "12"]
    assert [float(row["weight"]) for row in found[:2]] == [0.5, 0.5]  # p₁
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert float(first["weight"]) + float(second["weight"]) == pytest.approx(1, abs=1e-6)


def test_a_run_is_a_directory_of_its_settings_and_seed_and_is_kept(
    train: Train, tmp_path: Path
) -> None:
    """It has the bytes of any other such run; the batches are those of its seed's other runs."""
    brief = "training.iterations=4"
    even, twin, first, *others = (
        train(brief, f"method={method}", *overrides, outputs=tmp_path / outputs).directory
        for method, outputs, *overrides in (
            ("even", "outputs"),
            ("opt", "twin"),
            ("opt", "outputs"),
            ("opt", "outputs", "seed=1"),
            ("opt", "outputs", "method.lam=2"),
            ("opt", "outputs", "training.learning_rate=0.1"),
        )
    )
    assert len({even, first, *others}) == 5
    assert_same_rows(first, twin)
    assert all(rows(first) != rows(other) for other in others)
    assert rows(even)[:4] == rows(first)[:4]  # of the untrained model
    assert rows(even, "weights.csv")[:2] == rows(first, "weights.csv")[:2]  # of the first batch
    before = (first / "metrics.csv").stat().st_mtime_ns
    asked = (brief, "method=opt", "logging.every=5")  # which changes no number
    assert train(*asked).status == "kept"
    assert (first / "metrics.csv").stat().st_mtime_ns == before
    assert train(*asked, "force=true").status == "finished"
    assert (first / "metrics.csv").stat().st_mtime_ns > before


def test_a_directory_that_holds_another_run_is_refused(train: Train, domains: DomainSet) -> None:
    brief = "training.iterations=1"
    directory = train(brief).directory
    other = synthetic_domains(seed=1)
    with pytest.raises(UserError, match="read other data") as error:
        train(brief, data=other)
    assert other.fingerprint[:12] in str(error.value)
    assert train(brief, data=domains).status == "kept"
    shutil.copytree(directory, directory.with_name("seed=7"))
    with pytest.raises(UserError, match="other settings"):
        train(brief, "seed=7")
    config = yaml.safe_load((directory / "config.yaml").read_text())
    config["training"]["momentum"] = 0.5
    (directory / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(UserError, match="other settings"):
        train(brief)


@pytest.mark.parametrize(
    ("method", "after"),
    [
        ("even", 3),
        ("opt", 11),
        ("ot", 8),
        ("minimax", 7),
        ("oracle", 9),
        ("optimistic", 8),
        ("famo", 5),
    ],
)
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(
    gone_on: Callable[..., Any], method: str, after: int
) -> None:
    extra = [*NEEDS.get(method, []), "training.schedule=cosine"]
    ours, theirs = map(summary, gone_on(f"method={method}", *extra, after=after))
    for key in ("final", "worst", "weights", "weights_mean", "regret"):
        assert ours.get(key) == theirs.get(key)


@pytest.mark.parametrize(("resume", "settings"), [(False, []), (True, ADAMW)])
def test_a_run_killed_without_a_word_goes_on_from_its_checkpoint_or_begins_anew(
    train: Train,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    resume: bool,
    settings: list[str],
) -> None:
    whole = train(*settings, outputs=tmp_path / "whole")

    class Killed(BaseException):
        pass

    def dying(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:  # dies after its last measurement and a checkpoint at 10
        patch.setattr(run_module.Run, "finish", dying)
        with pytest.raises(Killed):
            train(*settings)
    again = train(f"resume={resume}", *settings).directory
    assert_same_rows(again, whole.directory)
    assert bool(summary(again)["notes"]) == resume


def test_a_diverged_run_says_where_and_how_many_updates_were_skipped(train: Train) -> None:
    settings = "method=opt", "training.learning_rate=1e6", "training.schedule=constant"
    outcome = train(*settings)
    assert (outcome.status, outcome.exit_code) == ("diverged", 1)
    found = summary(outcome.directory)
    assert found["status"] == "diverged"
    assert re.match(r"the loss of [ab] was not finite in iteration \d+; try", found["message"])
    assert "final" not in found
    assert found["skipped_updates"] > 0
    assert f"{found['skipped_updates']} updates of the weights skipped" in found["warnings"][0]
    with signalled_at(int(found["message"].partition("iteration ")[2].partition(";")[0]) - 1):
        ended = train(*settings, "seed=0", "logging.every=1")
    assert (ended.status, ended.exit_code, ended.stop_code) == ("diverged", 1, 143)


@pytest.mark.parametrize("settings", [["method=even"], ["method=best_response", "method.every=4"]])
def test_a_measured_loss_that_is_not_finite_is_a_diverged_run(
    train: Train, settings: list[str]
) -> None:
    """After a step that no batch loss has seen yet: the last one, or before a measurement."""
    blown_up = ["training.learning_rate=1e15", "training.schedule=constant"]
    outcome = train("training.iterations=1", *blown_up, *settings)
    assert (outcome.status, outcome.exit_code) == ("diverged", 1)
    text = (outcome.directory / "summary.json").read_text("utf-8")
    found = json.loads(text, parse_constant=lambda word: pytest.fail(f"no JSON: {word}"))
    assert found["status"] == "diverged"
    assert found["message"].startswith("the train loss of a was not finite after iteration 1")
    assert "final" not in found


def test_a_constant_prediction_is_in_the_log_and_the_summary(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Same(torch.nn.Linear):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return super().forward(images.mean(dim=(1, 2, 3), keepdim=True)[:, 0, 0]) * 0

    monkeypatch.setattr(learner_module, "build_backbone", lambda *_: Same(1, 3))
    outcome = train("evaluation.predictions=false")
    final = summary(outcome.directory)["final"]
    assert all(m["constant"] for split in final.values() for m in split.values())
    log = (outcome.directory / "train.log").read_text("utf-8")
    line = "warning: predicts one class for all images of train: a, b; test: a, b"
    assert log.count(line) == log.count("predicts") == 1


def test_too_little_device_memory_is_a_line_with_a_smaller_batch(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(run_module.Run, "train", full)
    with pytest.raises(UserError, match=r"training.batch_size=20; try 10"):
        train()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the limit is from there")
@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("training.batch_size=2000000", "training.batch_size=2000000; try 1000000"),
        (f"training.batch_size={2**62}", f"training.batch_size={2**62}; try {2**61}"),
        ("backbone.hidden=1000000000", "the images and the model; choose a smaller backbone"),
        ("backbone.width=1e300", "the images and the model; choose a smaller backbone"),
    ],
)
def test_too_little_memory_of_the_machine_is_a_line_too(
    train: Train, tmp_path: Path, override: str, words: str
) -> None:
    """With half a gigabyte more than is used now, as `ulimit -v` would give it."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    process = os.fork()
    if process == 0:
        most = pages * resource.getpagesize() + 2**29
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        try:
            train(override)
        except UserError as error:
            (tmp_path / "said").write_text(str(error))
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    assert (tmp_path / "said").read_text().startswith(f"too little memory for {words}")


def test_an_unwritable_output_folder_is_one_line(train: Train, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UserError, match=r"paths.outputs") as error:
        train(outputs=blocked)
    assert "\n" not in str(error.value)


def test_a_disk_that_fills_up_is_one_line_and_the_run_says_failed(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the run goes on when there is room: tests/faults/test_disks.py."""
    write = files.write_atomically

    def full_after_the_first_checkpoint(path: Path, content: Any) -> None:
        if path.name == "iteration-00000010.pt":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, content)

    monkeypatch.setattr(files, "write_atomically", full_after_the_first_checkpoint)
    with pytest.raises(UserError, match=r"No space left on device; free .* paths.outputs"):
        train()
    (directory,) = (tmp_path / "outputs").glob("*/*/*/seed=0")
    assert summary(directory)["status"] == "failed"
    assert "No space left" in summary(directory)["message"]


def test_a_batch_that_the_domains_do_not_divide_is_said(train: Train) -> None:
    found = summary(train("training.batch_size=21", "training.iterations=1").directory)
    assert found["effective_batch"] == 20
    assert "20 examples an iteration, 10 of each" in found["notes"][0]


def test_individual_trains_on_one_domain_and_is_measured_on_all(train: Train) -> None:
    brief = "training.iterations=2"
    by_index = train(brief, "method=individual")
    by_name = train(brief, "method=individual", "method.domain=a")
    assert (by_name.status, by_name.directory) == ("kept", by_index.directory)
    found = summary(by_index.directory)
    assert found["weights"] == {"a": 1.0}
    assert found["effective_batch"] == 20
    assert set(found["final"]["train"]) == {"a", "b"}


def test_an_unseen_domain_is_measured_and_trains_nothing(train: Train) -> None:
    """The run is the run on the other domains, with the unseen one's rows beside theirs."""

    def arrays(domain: str) -> tuple[np.ndarray, ...]:
        splits = synthetic_domains()[domain]
        return splits.train.images, splits.train.targets, splits.test.images, splits.test.targets

    two = {name: arrays(name) for name in "ab"}
    three = two | {"c": tuple(255 - x if x.ndim == 4 else x for x in arrays("b"))}
    found = {}
    for case, tensors in (("two", two), ("three", three)):
        domains = DomainSet.from_tensors(tensors)
        unseen = ["data.unseen=[c]"] if case == "three" else []
        given = ("data=folder", "method=opt", "method.prior=[0.3,0.7]", *unseen)
        found[case] = train(*given, data=domains)
    without, beside = (found[case].directory for case in ("two", "three"))
    assert summary(beside)["weights"] == summary(without)["weights"]
    assert rows(beside, "weights.csv") == rows(without, "weights.csv")
    measured = rows(beside)
    assert [row for row in measured if row["domain"] != "c"] == rows(without)
    assert {row["split"] for row in measured if row["domain"] == "c"} == {"train", "test"}


def test_validation_is_measured_apart(train: Train) -> None:
    held_out = synthetic_domains().with_validation(0.2, seed=0)
    outcome = train("data.validation=0.2", "training.iterations=1", data=held_out)
    final = summary(outcome.directory)["final"]
    assert final["val"]["a"]["examples"] == 12
    assert final["train"]["a"]["examples"] == 48


def test_early_measurements_may_take_a_subset_and_the_last_takes_all(train: Train) -> None:
    outcome = train("evaluation.examples=10")
    counts = {
        (row["iteration"], row["split"]): row["examples"]
        for row in rows(outcome.directory)
        if row["domain"] == "a"
    }
    assert counts["0", "train"] == counts["8", "train"] == "10"
    assert counts["12", "train"] == "60"
    assert counts["0", "test"] == "30"
    assert summary(outcome.directory)["measured_examples"] == {"a": 10, "b": 10}


def test_predictions_are_the_final_models_and_agree_with_its_measures(
    train: Train, domains: DomainSet
) -> None:
    outcome = train()
    with np.load(outcome.directory / "predictions.npz", allow_pickle=False) as arrays:
        logits, labels = arrays["test/b/logits"], arrays["test/b/label"]
        assert logits.dtype == np.float16
        np.testing.assert_array_equal(labels, domains["b"].test.targets)
        accuracy = 100 * np.mean(logits.argmax(1) == labels)
    final = summary(outcome.directory)["final"]["test"]["b"]["accuracy"]
    assert accuracy == pytest.approx(final, abs=100 / 30 + 1e-9)  # float16 may tie an example
    without = train("evaluation.predictions=false", "training.iterations=1")
    assert not (without.directory / "predictions.npz").exists()
