"""Whole runs of frozen and of larger backbones: features that are kept, kills."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tiny import rows

from robustmd.cli import main
from robustmd.domains import DomainSet, Views
from robustmd.runs import checkpoints
from robustmd.training import steps

Train = Callable[..., Any]
FROZEN = "++backbone.freeze=features"


@pytest.fixture
def train(train: Train) -> Train:
    """Four iterations of a small ShuffleNet on the tiny domains; returns the outcome."""
    model = ("backbone=torchvision", "backbone.model=shufflenet_v2_x0_5")
    short = ("training.iterations=4", "training.batch_size=8", "evaluation.every=2")
    return partial(train, *model, *short, "logging.every=1", "checkpoint.every=2")


def numbers(directory: Path, name: str) -> np.ndarray:
    columns = {"metrics.csv": ("loss", "accuracy"), "weights.csv": ("weight", "batch_loss")}[name]
    return np.array([[float(row[column]) for column in columns] for row in rows(directory, name)])


def test_frozen_features_kept_give_the_losses_of_computing_them_anew(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = train(FROZEN, "method=minimax", outputs=tmp_path / "kept")
    assert "features of 180 examples computed once" in (kept.directory / "train.log").read_text()
    monkeypatch.setattr(steps, "features_of", lambda *_: None)
    anew = train(FROZEN, "method=minimax", outputs=tmp_path / "anew")
    assert "computed anew for each batch" in (anew.directory / "train.log").read_text()
    for name in ("metrics.csv", "weights.csv"):
        found, due = numbers(kept.directory, name), numbers(anew.directory, name)
        np.testing.assert_allclose(found, due, rtol=1e-4, atol=1e-5)
    final, other = (checkpoints.load_model(one.directory) for one in (kept, anew))
    assert final.keys() == other.keys()
    torch.testing.assert_close(final, other, rtol=1e-4, atol=1e-5)
    ids = [np.load(one.directory / "predictions.npz")["test/b/id"] for one in (kept, anew)]
    np.testing.assert_array_equal(*ids)
    assert main(["evaluate", str(kept.directory)]) == 0


@pytest.mark.parametrize(("sigma", "augment"), [(3.0, "none"), (0.0, "standard")])
def test_random_views_are_seen_by_frozen_features(
    train: Train, domains: DomainSet, sigma: float, augment: str
) -> None:
    for domain in domains:
        for examples in domain.splits.values():
            object.__setattr__(examples, "views", Views(sigma=sigma))
    outcome = train(FROZEN, "training.iterations=2", f"data.augment={augment}")
    log = (outcome.directory / "train.log").read_text()
    assert "computed anew for each batch: the training images' views are random" in log


def test_a_moving_average_is_of_the_head_alone(train: Train) -> None:
    outcome = train(FROZEN, "++training.ema=0.5", "++training.optimizer=adamw")
    measured = {row["split"] for row in rows(outcome.directory)}
    assert {"train_averaged", "test_averaged"} <= measured


@pytest.mark.parametrize("method", ["even", "minimax"])
def test_frozen_batch_norm_keeps_its_statistics(train: Train, method: str) -> None:
    keys = ("++backbone.freeze_bn=true", f"method={method}", "evaluation.every=1")
    outcome = train(*keys, "training.iterations=2")
    final = checkpoints.load_model(outcome.directory)
    assert torch.equal(final["conv1.1.running_mean"], torch.zeros(24))
    assert not torch.equal(final["conv1.1.weight"], torch.ones(24))


def test_dropout_goes_on_where_it_was(train: Train, gone_on: Train) -> None:
    whole, _ = gone_on(FROZEN, "++backbone.dropout=0.5", after=3)
    without = train(FROZEN).directory
    assert rows(without, "weights.csv") != rows(whole, "weights.csv")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three domains of three classes, as PACS lies on a disk."""
    random = np.random.default_rng(0)
    for domain, light in (("art", 0), ("photo", 40), ("sketch", 80)):
        for label in range(3):
            folder = tmp_path / "pacs" / domain / f"class_{label}"
            folder.mkdir(parents=True)
            for i in range(10):
                pixels = random.normal(light + 60 * label, 30, (64, 64, 3)).clip(0, 255)
                Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
    return tmp_path / "pacs"


KILLED = """
import sys
from robustmd.cli import main
from tiny import signalled_at
with signalled_at(3, "SIGKILL"):
    main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("augment", ["none", "standard"])
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize(
    "backbone", ["torchvision resnet50", "torchvision alexnet", "timm vit_tiny_patch16_224"]
)
def test_a_killed_run_of_a_larger_model_ends_in_the_same_bytes(
    backbone: str, optimizer: str, augment: str, photos: Path, tmp_path: Path
) -> None:
    library, model = backbone.split()
    pytest.importorskip(library)
    keys = [
        *("train", "data=folder", f"data.root={photos}", "data.size=64", f"backbone={library}"),
        *(f"backbone.model={model}", "method=opt", "training.iterations=5"),
        *("training.batch_size=12", "training.learning_rate=0.001", "checkpoint.every=2"),
        *("runtime.threads=1", "runtime.device=cpu", f"paths.cache={tmp_path / 'cache'}"),
        *(f"training.optimizer={optimizer}", f"data.augment={augment}"),
    ]
    killed, whole = (f"paths.outputs={tmp_path / name}" for name in ("killed", "whole"))
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    script = [sys.executable, "-c", KILLED, *keys, killed]
    assert subprocess.run(script, env=path, check=False, capture_output=True).returncode == -9
    for outputs in (killed, whole):
        done = subprocess.run(
            [sys.executable, "-m", "robustmd", *keys, outputs], check=False, capture_output=True
        )
        assert done.returncode == 0, done.stderr
    one, other = (next((tmp_path / name).glob("*/*/*/seed=0")) for name in ("killed", "whole"))
    assert "resumed after iteration 2" in (one / "train.log").read_text()
    assert rows(one) == rows(other)
    assert (one / "weights.csv").read_bytes() == (other / "weights.csv").read_bytes()
    final, same = map(checkpoints.load_model, (one, other))
    assert all(final[name].equal(value) for name, value in same.items())
    assert main(["report", str(tmp_path / "whole"), "--out", str(tmp_path / "report")]) == 0
    assert (tmp_path / "report" / "index.html").is_file()
