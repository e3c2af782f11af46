"""Groups of one class each and of very different sizes, as Waterbirds has them."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from tiny import composed, rows, summary

from robustmd.report.write import write_report
from robustmd.training import run as run_module

SIZES = {  # training images; a twentieth of Waterbirds'
    ("landbird", "land"): 175,
    ("landbird", "water"): 9,
    ("waterbird", "land"): 3,
    ("waterbird", "water"): 53,
}
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
    """The directories of one run of each of `METHODS`."""
    return {method: train(method) for method in METHODS}


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
    outputs: dict[str, Path], tmp_path: Path
) -> None:
    tree = next(iter(outputs.values())).parents[3]
    page = (write_report(tree, tmp_path / "report", draw=False).out / "README.md").read_text()
    expected = ", ".join(f"{name} {n} + 8" for name, n in zip(NAMES, SIZES.values(), strict=True))
    assert f"Training + test examples: {expected}." in page
    worst = summary(outputs["opt"])["worst"]["test"]["accuracy"]
    whole = page.partition("### Full table")[2].splitlines()
    row = next(line for line in whole if line.startswith("| opt "))
    assert f"{worst:.2f}" in row
