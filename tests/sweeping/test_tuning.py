"""A search by Optuna, as it is typed: what decides, what an interruption changes, how it ends."""

import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from hydra.core.config_store import ConfigStore
from robustmd.training.batches import BatchStream

from robustmd import cli
from robustmd.config.loading import load_domains
from robustmd.domains import DomainSet
from robustmd.runs.listing import list_runs

optuna = pytest.importorskip("optuna")

TINY = [
    "data=digits_mini",
    "data.validation=0.2",
    "training.iterations=12",
    "training.batch_size=8",
    "evaluation.every=4",
    "evaluation.examples=20",
    "evaluation.predictions=false",
    "logging.every=4",
    "backbone.width=0.05",
]
RATES = "training.learning_rate=tag(log,interval(0.001,0.5))"
SEARCH = ["-m", "hydra/sweeper=optuna", *TINY]
SHORT = [*SEARCH, "hydra.sweeper.trials=4", "hydra.sweeper.prune_after=2", RATES]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outputs of an undisturbed search of four trials, two of them pruned."""
    folder = tmp_path_factory.mktemp("whole")
    assert cli.main(["train", *SHORT, f"paths.outputs={folder}"]) == 0
    assert sorted(state for _, state, *_ in trials(folder)) == ["COMPLETE"] * 2 + ["PRUNED"] * 2
    return folder


def trials(folder: str | Path = "outputs") -> list[Any]:
    """The one search's: number, state, values and loss of each."""
    (name,) = optuna.get_all_study_names(url := f"sqlite:///{folder}/tuning.sqlite")
    found = optuna.load_study(study_name=name, storage=url).trials
    return [(one.number, one.state.name, one.params, one.value) for one in found]


def test_an_interrupted_search_ends_with_the_trials_of_an_undisturbed_one(
    whole: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw, drawn = BatchStream.draw, iter(range(10**6))

    def interrupting(self: BatchStream, at: int) -> Any:
        if next(drawn) == 14:  # in the second trial
            os.kill(os.getpid(), signal.SIGTERM)
        return draw(self, at)

    with monkeypatch.context() as patch:
        patch.setattr(BatchStream, "draw", interrupting)
        assert cli.main(["train", *SHORT]) == 128 + signal.SIGTERM
    assert [state for _, state, *_ in trials()] == ["COMPLETE", "RUNNING"]
    assert cli.main(["train", *SHORT]) == 0
    assert trials() == trials(whole)
    capsys.readouterr()
    assert cli.main(["train", *SHORT]) == 0  # nothing is left to do
    said = capsys.readouterr().out
    assert "[run" not in said
    best = min((one for one in trials() if one[1] == "COMPLETE"), key=lambda one: one[-1])
    rate = f"training.learning_rate={best[2]['training.learning_rate']}"
    assert f"best of 4 trials, 2 of them pruned: {rate}, worst-case validation loss " in said
    assert re.search(rf"robustmd train -m data=digits_mini .* {rate} seed=1,2,3", said)


@pytest.mark.slow
def test_a_pruned_run_says_why_and_ends_as_any_other_when_it_is_trained_alone(whole: Path) -> None:
    runs = list_runs(whole)
    assert sorted(run.status for run in runs) == ["finished"] * 2 + ["pruned"] * 2
    pruned = next(run for run in runs if run.status == "pruned")
    said = tiny.summary(pruned.path)
    assert "half of the search's finished runs had" in said["message"]
    assert said["iterations_done"] < 12
    again = ["train", *TINY, f"training.learning_rate={pruned.config['training']['learning_rate']}"]
    shutil.copytree(whole, "outputs")
    assert cli.main(again) == 0
    assert cli.main([*again, "paths.outputs=alone"]) == 0
    (alone,) = list_runs(Path("alone"))
    for name in ("metrics.csv", "weights.csv"):
        resumed = Path("outputs") / pruned.path.relative_to(whole)
        assert tiny.rows(resumed, name) == tiny.rows(alone.path, name)


@pytest.mark.slow
def test_the_test_set_decides_nothing(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def poisoned(config: Any, say: Callable[[str], None]) -> DomainSet:
        domains = load_domains(config, say)
        for test in (one.test for one in domains):
            object.__setattr__(test, "images", 255 - test.images)
            object.__setattr__(test, "labels", np.roll(test.labels, 1))
        return domains

    monkeypatch.setattr("robustmd.training.run.load_domains", poisoned)
    assert cli.main(["train", *SHORT]) == 0
    assert trials() == trials(whole)
    for run in list_runs(whole):
        there, here = (
            [row["loss"] for row in tiny.rows(path) if row["split"] == "test"]
            for path in (run.path, Path("outputs") / run.path.relative_to(whole))
        )
        assert there != here


@pytest.mark.slow
def test_without_ranges_the_methods_own_are_searched() -> None:
    few = [*SEARCH, "hydra.sweeper.trials=1", "training.iterations=1", "method=minimax"]
    assert cli.main(["train", *few]) == 0
    ((key, value),) = trials()[0][2].items()
    assert key == "method.step"
    assert value in ("lemma1", "theorem1")


def test_failed_runs_are_no_results_and_end_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    failing = ["method.lam=-1,-2", "hydra.sweeper.trials=3"]
    assert cli.main(["train", *SEARCH, *failing]) == 2
    assert "method.lam=-" in capsys.readouterr().err
    assert [state for _, state, *_ in trials()] == ["FAIL"]


def test_a_run_that_diverged_is_the_worst_there_is() -> None:
    wild = ["training.learning_rate=1e30,2e30", "hydra.sweeper.trials=1"]
    assert cli.main(["train", *SEARCH, *wild]) == 1
    assert [one[-1] for one in trials()] == [math.inf]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["data.validation=0"], "there is no validation set; hold training images out"),
        (["seed=0,1"], "seed=0,1: a search is of one data, one method, one seed"),
        (["method=even"], "method=even: has no key to search for"),
        (["method.lam=interval(2,1)"], "`low"),  # Optuna's words, which change
        (["hydra.sweeper.trials=0"], "hydra.sweeper.trials=0: must be a whole number >= 1"),
        (["experiment=demo"], "hydra/sweeper=optuna has no such key; where an experiment sets it"),
        (["--list"], "--list: a search draws its runs one after another"),
        (["hydra.sweeper.storage=sqlite:////nowhere/a"], "unable to open database file"),
    ],
)
def test_what_makes_no_search_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert cli.main(["train", *SEARCH, *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_the_published_sweeper_of_the_same_name_gives_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    theirs = {"_target_": "hydra_plugins.theirs.OptunaSweeper", "n_trials": 20}
    ConfigStore.instance().store(group="hydra/sweeper", name="optuna", node=theirs)
    assert cli.main(["train", *SEARCH, "data.validation=0"]) == 2
    assert "there is no validation set" in capsys.readouterr().err


@pytest.mark.slow
def test_twelve_trials_two_at_a_time_interrupted_once(tmp_path: Path) -> None:
    search = [*SEARCH, "hydra.sweeper.trials=12", "method=opt", "training.iterations=60", "jobs=2"]
    command = [sys.executable, "-m", "robustmd", "train", *search]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(" 5|   iteration 8/"):
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert [state for _, state, *_ in trials()].count("RUNNING") == 2
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(trials()) == 12
    runs = list_runs(tmp_path / "outputs")
    assert {run.status for run in runs} <= {"finished", "pruned"}
    assert len(runs) == 12
    undisturbed = subprocess.run(
        [*command, "paths.outputs=whole"], capture_output=True, text=True, check=True
    )
    assert trials() == trials("whole")
    best = min((one for one in trials() if one[1] == "COMPLETE"), key=lambda one: one[-1])
    again = shlex.split(undisturbed.stdout.splitlines()[-1])
    assert f"method.lam={best[2]['method.lam']}" in again
    assert done.stdout.splitlines()[-2] == undisturbed.stdout.splitlines()[-2]
    # The best trial's value from what the storage has of it alone, in a run of its own.
    lam = f"method.lam={best[2]['method.lam']}"
    alone = ["data.validation=0.2", "training.iterations=60", lam, "runtime.threads=1"]
    assert cli.main(["train", *TINY, *alone, "paths.outputs=alone"]) == 0
    (run,) = list_runs(tmp_path / "alone")
    last = [row for row in tiny.rows(run.path) if row["split"] == "val"][-2:]
    assert max(float(row["loss"]) for row in last) == pytest.approx(best[3], rel=1e-12)
