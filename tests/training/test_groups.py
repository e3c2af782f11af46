"""Groups of one class each and of very different sizes, as Waterbirds has them."""

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from tiny import composed, rows, signalled_at, summary, synthetic_domains
from torch.nn.functional import cross_entropy

from robustmd.config.validation import settled, validate
from robustmd.errors import UserError
from robustmd.report import report
from robustmd.report.report import write_report
from robustmd.training import run as run_module
from robustmd.training.batches import BatchStream
from robustmd.training.loop import Steps
from robustmd.training.pool import TrainingPool, resident_splits

SIZES = {  # training images; a twentieth of Waterbirds'
    ("landbird", "land"): 175,
    ("landbird", "water"): 9,
    ("waterbird", "land"): 3,
    ("waterbird", "water"): 53,
}
BY_SIZE = "erm data.shares=size"
NAMES = ["+".join(group) for group in SIZES]
METHODS = ("erm", "groupdro method.adjustment=0", "groupdro method.adjustment=3", "opt")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("birds")
    random = np.random.default_rng(0)
    lines = ["path,label,place,split"]
    for (label, place), count in SIZES.items():
        for number in range(count + 8):
            path = f"{label}_{place}_{number}.bmp"
            pixels = random.integers(0, 90, (8, 8, 3), dtype=np.uint8)
            pixels[..., 0] += 80 * (label == "landbird")
            pixels[..., 2] += 160 * (place == "water")
            Image.fromarray(pixels).save(folder / path)
            lines.append(f"{path},{label},{place},{'train' if number < count else 'test'}")
    (folder / "birds.csv").write_text("\n".join(lines))
    return folder / "birds.csv"


@pytest.fixture(scope="module")
def train(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Four iterations of a method, by default beside the others; returns the run's directory."""
    folder = tmp_path_factory.mktemp("groups")

    def go(method: str, outputs: Path = folder / "outputs") -> Path:
        config = composed(
            *("data=folder", f"data.manifest={manifest}", "data.group_by=[label,place]"),
            *("training.iterations=4", "training.batch_size=32"),
            *("backbone.width=0.05", "runtime.threads=1", "runtime.device=cpu", "logging.every=1"),
            *("evaluation.every=4", f"paths.outputs={outputs}"),
            *(f"method={method}".split()),
            f"paths.cache={folder / 'cache'}",
        )
        return run_module.run(config, Console(file=io.StringIO())).directory

    return go


@pytest.fixture(scope="module")
def outputs(train: Callable[..., Path]) -> dict[str, Path]:
    """The directories of one run of each of `METHODS`, and of erm by size."""
    return {method: train(method) for method in (*METHODS, BY_SIZE)}


def test_every_method_trains_on_groups_of_one_class_each(outputs: dict[str, Path]) -> None:
    for directory in outputs.values():
        found = summary(directory)
        assert (found["status"], found["domains"]) == ("finished", NAMES)
        assert not any("lacks" in note for note in found["notes"])
        sizes = {name: measured["examples"] for name, measured in found["final"]["train"].items()}
        assert sizes == dict(zip(NAMES, SIZES.values(), strict=True))


@pytest.mark.parametrize("adjustment", [0, 3])
def test_group_dro_is_the_published_update_on_the_runs_losses(
    outputs: dict[str, Path], adjustment: int
) -> None:
    """compute_robust_loss of kohpangwei/group_DRO: p ∝ p exp(η (loss + C/√n)), then the step."""
    recorded = rows(outputs[f"groupdro method.adjustment={adjustment}"], "weights.csv")
    p = np.full(4, 0.25)
    for iteration in range(1, 5):
        of = [row for row in recorded if int(row["iteration"]) == iteration]
        losses = np.array([float(row["batch_loss"]) for row in of])
        p = p * np.exp(0.01 * (losses + adjustment / np.sqrt([*SIZES.values()])))
        p = p / p.sum()
        np.testing.assert_allclose([float(row["weight"]) for row in of], p, rtol=1e-5)
    assert (p.argmax() == 2) or adjustment == 0  # the group of three images


def test_the_report_shows_the_worst_group_and_the_sizes(
    outputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "draw_all", lambda one: iter(()))
    tree = next(iter(outputs.values())).parents[3]
    page = (write_report(tree, tmp_path / "report").out / "README.md").read_text()
    expected = ", ".join(f"{name} {n} + 8" for name, n in zip(NAMES, SIZES.values(), strict=True))
    assert f"Training + test examples: {expected}." in page
    worst = summary(outputs["opt"])["worst"]["test"]["accuracy"]
    (row,) = [line for line in page.splitlines() if line.startswith("| opt ")][:1]
    assert f"{worst:.2f}" in row


def test_shares_by_size_are_said_and_leave_erms_weights_as_they_are(
    outputs: dict[str, Path],
) -> None:
    equal, by_size = (summary(outputs[name]) for name in ("erm", BY_SIZE))
    assert equal["weights"] == by_size["weights"]
    (note,) = [note for note in by_size["notes"] if "data.shares" in note]
    assert note.endswith(
        "23 of landbird+land, 1 of landbird+water, 1 of waterbird+land, 7 of waterbird+water"
    )
    assert equal["effective_batch"] == by_size["effective_batch"] == 32


def test_a_run_with_unequal_shares_goes_on_to_the_same_bytes(
    outputs: dict[str, Path], train: Callable[..., Path], tmp_path: Path
) -> None:
    with signalled_at(1):
        train(BY_SIZE, tmp_path)
    cut = train(BY_SIZE, tmp_path)
    assert summary(cut)["notes"][-1] == "resumed after iteration 2"
    for name in ("metrics.csv", "weights.csv"):
        assert rows(cut, name) == rows(outputs[BY_SIZE], name)


def test_a_loss_is_the_mean_over_its_domains_own_part() -> None:
    domains = synthetic_domains()
    batches = BatchStream({d.name: d.train for d in domains}, 12, 0, shares=[1, 3])
    splits = resident_splits(domains, torch.device("cpu"))["train"].values()
    pool = TrainingPool([*splits], batches.counts)
    logits = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
    each = partial(cross_entropy, reduction="none")
    learner = SimpleNamespace(training_logits=lambda _: logits, loss=each, iteration=0)
    steps = Steps(SimpleNamespace(learner=learner, pool=pool, batches=batches))  # type: ignore[arg-type]
    steps.draw()
    steps.gather()
    steps.forward()
    due = [cross_entropy(logits[part], steps.labels[part]) for part in (slice(3), slice(3, 12))]
    assert steps.losses.tolist() == pytest.approx([float(loss) for loss in due])


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["++data.shares=[1,2,3]"], "has 3 entries; must have 2, one for each of a, b"),
        (["++data.shares=size", "training.batch_size=1"], "needs all 2 domains in each batch"),
        (["++data.shares=size", "training.domains_per_batch=1"], "leave out training.domains_per"),
    ],
)
def test_shares_that_do_not_go_with_the_domains_are_refused(
    overrides: list[str], words: str
) -> None:
    config = composed(*overrides)
    with pytest.raises(UserError) as error:
        settled(config, ("a", "b"))
    assert words in str(error.value)


@pytest.mark.parametrize("shares", ["[1,0]", "most"])
def test_shares_that_are_none_are_refused(shares: str) -> None:
    config = composed(f"++data.shares={shares}")
    with pytest.raises(UserError, match="must be equal, size or a list of numbers > 0"):
        validate(config)
