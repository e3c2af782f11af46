"""Training from Python: the command's bytes, objects in place of names, what a run gives back."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.special import softmax
from tiny import TINY, composed, rows, synthetic_domains

import robustmd
from robustmd import cli
from robustmd.config.loading import load_domains
from robustmd.domains import DomainSet
from robustmd.errors import UserError

SHORT = ["method=opt", "data=digits_mini", "training.iterations=4", *TINY]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, prepared_cache: Path):
    """An empty working folder with the prepared data, for all tests here."""
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("ROBUSTMD_CACHE", str(prepared_cache))
        yield folder


@pytest.fixture(scope="module")
def run(folder: Path) -> "robustmd.Run":
    return robustmd.train(*SHORT)


def shown_by_the_last_of(cells: list[str], folder: Path) -> str:
    """Run the cells as a notebook; without Jupyter as the script that they are."""
    try:
        import ipykernel  # noqa: F401
        import nbclient
        import nbformat
    except ImportError:
        names: dict[str, Any] = {}
        exec("\n".join(cells[:-1]), names)
        return names[cells[-1]]._repr_html_()
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": folder}}).execute()
    shown = [one["data"]["text/plain"] for one in book.cells[1].outputs if "data" in one]
    bars = [text for text in shown if re.match(r"\d/4 ", text)]  # one, that changed in place
    assert len(bars) == 1
    assert re.match(r"4/4 ━+ .* it/s .* p handwritten .*  worst loss ", bars[0])
    assert not any("worst training loss" in text and "iteration 0/4" in text for text in shown)
    return book.cells[-1].outputs[0]["data"]["text/html"]


def test_a_notebook_gives_the_commands_bytes(run, folder: Path) -> None:
    cells = ["import robustmd", f"run = robustmd.train(*{SHORT}, 'paths.outputs=cells')", "run"]
    assert "handwritten" in shown_by_the_last_of(cells, folder)
    command = [sys.executable, "-m", "robustmd", "train", *SHORT, "paths.outputs=command"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    place = run.path.relative_to(folder / "outputs")
    for name in ("metrics.csv", "weights.csv"):
        assert rows(folder / "cells" / place, name) == rows(folder / "command" / place, name)
        assert rows(folder / "cells" / place, name) == rows(run.path, name)


def test_a_run_gives_its_tables_and_its_record(run) -> None:
    last = run.metrics[run.metrics.iteration == 4]
    assert set(last.split) == {"train", "test"}
    for split, of in last.groupby("split"):
        assert of.loss.max() == pytest.approx(run.summary["worst"][split]["loss"])
    assert run.weights.groupby("iteration").weight.sum().to_numpy() == pytest.approx(1)
    assert run.status == "finished"
    assert len(repr(run).splitlines()) == 4
    assert "<table" in run._repr_html_()
    assert len(run.plot().axes) == 2
    assert [one.path for one in robustmd.load_runs("outputs")] == [run.path]
    again = robustmd.load_run(run.path)
    assert again.metrics.equals(run.metrics)
    assert robustmd.train(*SHORT).path == run.path


def test_its_model_predicts_as_it_was_measured(run, folder: Path) -> None:
    with np.load(run.path / "predictions.npz") as kept:
        logits, label = kept["test/printed/logits"][:6], kept["test/printed/label"]
    images = load_domains(composed("data=digits_mini"), print)["printed"].test.images[:6]
    found = run.predict(images)
    assert found == pytest.approx(softmax(logits.astype(np.float32), 1), abs=2e-3)
    assert len(label) == 1000
    assert not run.model().training
    with pytest.raises(UserError, match="must be one of last, best"):
        run.model("worst")
    Image.fromarray(images[0]).save(folder / "one.png")
    assert run.predict([folder / "one.png"]) == pytest.approx(found[:1], abs=1e-6)
    with pytest.raises(UserError, match=r"images are float64 \[2, 32, 32, 3\]; needed are uint8"):
        run.predict(np.zeros((2, 32, 32, 3)))
    with pytest.raises(UserError, match=r"nothing\.png: cannot be read"):
        run.predict("nothing.png")


def test_predictions_name_each_examples_file(folder: Path) -> None:
    for number in range(24):
        place = folder / "own" / "ab"[number % 2] / str(number % 3)
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), (10 * number,) * 3).save(place / f"{number:02}.png")
    own = ["data=folder", f"data.root={folder}/own", "training.iterations=1", *TINY]
    run = robustmd.train(*own)
    with np.load(run.path / "predictions.npz") as kept:
        labels, files = kept["test/a/label"], kept["test/a/file"]
    assert [file.split("/")[:2] for file in files] == [["a", str(label)] for label in labels]
    sure = run.predict([folder / "own" / file for file in files]).argmax(1)
    with np.load(run.path / "predictions.npz") as kept:
        assert sure.tolist() == kept["test/a/logits"].argmax(1).tolist()


@pytest.mark.parametrize("kind", ["onnx", "torch-export"])
def test_an_exported_model_gives_the_same_logits(run, folder: Path, kind: str) -> None:
    if kind == "onnx":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    out = folder / f"{kind}.bin"
    assert cli.main(["export", str(run.path), f"--{kind}", "--out", str(out)]) == 0
    images = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    if kind == "onnx":
        import onnxruntime

        logits = onnxruntime.InferenceSession(out).run(None, {"images": images})[0]
    else:
        logits = torch.export.load(out).module()(torch.from_numpy(images)).detach().numpy()
    assert softmax(logits, 1) == pytest.approx(run.predict(images), abs=1e-5)


def test_an_export_that_cannot_be_is_one_line(run, folder: Path, monkeypatch) -> None:
    with pytest.raises(UserError, match=r"nowhere/m\.pt2: cannot be written"):
        run.export("torch-export", folder / "nowhere" / "m.pt2")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(UserError, match=r"onnx\w+ is not installed; .*pip install 'onnx>=1"):
        run.export("onnx")


def features(shift: float) -> tuple[np.ndarray, ...]:
    x = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    y = (x[:, 0] + shift > 0).astype(np.int64)
    return x[:40], y[:40], x[40:], y[40:]


def test_objects_are_part_of_the_identity_by_what_they_hold(folder: Path) -> None:
    def trained(shift: float, model: torch.nn.Module) -> "robustmd.Run":
        domains = {"a": features(0), "b": features(shift)}
        return robustmd.train("training.iterations=3", *TINY[1:], domains=domains, model=model)

    torch.manual_seed(0)
    model = torch.nn.Linear(5, 2)
    before = model.weight.detach().clone()
    first = trained(0.5, model)
    assert torch.equal(model.weight, before)
    assert trained(0.5, model).path == first.path
    fixed = torch.nn.Linear(5, 2).requires_grad_(False)
    fixed.load_state_dict(model.state_dict())
    fixed.bias.requires_grad_()
    of_fixed = trained(0.5, fixed.eval())
    others = trained(0.6, model), trained(0.5, torch.nn.Linear(5, 2)), of_fixed
    assert len({one.path for one in (first, *others)}) == 4
    assert torch.equal(of_fixed.model().weight, model.weight)
    assert first.predict(features(0)[2]).sum(1) == pytest.approx(1)
    loaded = robustmd.load_run(first.path)
    with pytest.raises(UserError, match="its module was made in Python"):
        loaded.model()
    again = robustmd.load_run(first.path, model)
    assert torch.equal(again.model().weight, first.model().weight)


def convolution() -> torch.nn.Module:
    layers = torch.nn.Conv1d(4, 3, 2), torch.nn.Flatten(), torch.nn.Linear(12, 2)
    return torch.nn.Sequential(*layers)


def embedding() -> torch.nn.Module:
    layers = torch.nn.Embedding(9, 3), torch.nn.Flatten(), torch.nn.Linear(12, 2)
    return torch.nn.Sequential(*layers)


@pytest.mark.parametrize(
    ("x", "make", "wrong", "words"),
    [
        (torch.randn(30, 4, 5), convolution, torch.zeros(2, 5), r"features are float32 \[2, 5\]"),
        (torch.randint(9, (30, 4)), embedding, torch.zeros(2, 4), "needed are integers .n, 4."),
    ],
    ids=["sequences", "tokens"],
)
def test_a_model_takes_what_is_no_image(folder: Path, x, make, wrong, words: str) -> None:
    torch.manual_seed(0)
    y, model = torch.arange(30) % 2, make()
    train, test = (torch.utils.data.TensorDataset(x[of], y[of]) for of in (y >= 0, y == 0))
    domains = DomainSet.from_tensors({"a": (train, test), "b": (test, train)}, features=True)
    run = robustmd.train("training.iterations=2", *TINY[1:], domains=domains, model=model)
    with np.load(run.path / "predictions.npz") as kept:
        logits = kept["test/b/logits"].astype(np.float32)
    assert run.predict(x) == pytest.approx(softmax(logits, 1), abs=2e-3)
    assert run.export("torch-export", folder / "features.pt2").is_file()
    with pytest.raises(UserError, match=words):
        run.predict(wrong)


@pytest.mark.parametrize(
    ("backbone", "words"),
    [
        (["backbone=alexnet"], "images are 1×4×5 px; it needs at least 32×32"),
        (["backbone=torchvision", "backbone.model=resnet18"], "and these are features .4, 5."),
    ],
)
def test_a_network_of_images_takes_no_sequences(folder: Path, backbone, words: str) -> None:
    arrays = torch.zeros(4, 4, 5), torch.arange(4) % 2
    domains = DomainSet.from_tensors(dict.fromkeys("ab", arrays * 2), features=True)
    with pytest.raises(UserError, match=f"{backbone[0]}: .*{words}"):
        robustmd.train(*backbone, "training.iterations=1", *TINY[1:], domains=domains)


def test_a_loss_counts_by_what_it_takes_from_outside(folder: Path) -> None:
    def trained(delta: float) -> "robustmd.Run":
        def huber(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.huber_loss(
                outputs, labels, reduction="none", delta=delta
            ).mean(1)

        x = features(0)
        numbers = x[0], x[0][:, :1], x[2], x[2][:, :1]
        torch.manual_seed(0)
        return robustmd.train(
            "training.iterations=3",
            *TINY[1:],
            domains={"a": numbers, "b": numbers},
            model=torch.nn.Linear(5, 1),
            loss=huber,
        )

    first = trained(1.0)
    assert first.predict(features(0)[2]).shape == (20, 1)
    assert "test loss" in repr(first)
    assert "accuracy" not in repr(first)
    assert first.plot().axes[0].get_ylabel() == "training loss"
    assert trained(1.0).path == first.path != trained(2.0).path
    assert re.fullmatch(r"huber_\w{12}", first.config["training"]["loss"])


def test_dropout_drops_though_the_module_came_in_evaluation_mode(folder: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Dropout(0.9), torch.nn.Linear(5, 2))
    domains = {"a": features(0), "b": features(1)}
    runs = [
        robustmd.train(
            *TINY[1:],
            *("training.iterations=2", "force=true", "paths.outputs=modes"),
            domains=domains,
            model=model.train(mode),
        ).weights
        for mode in (True, False)
    ]
    assert runs[0].equals(runs[1])


def test_one_domain_is_trained_on_and_said(folder: Path) -> None:
    model, alone = torch.nn.Linear(5, 2), {"a": features(0)}
    run = robustmd.train("training.iterations=2", *TINY[1:], domains=alone, model=model)
    assert run.summary["notes"] == ["data tensors has one domain, a: p is 1, whatever the method"]


def test_a_domain_set_is_trained_on_and_shows_itself(folder: Path) -> None:
    domains = synthetic_domains()
    run = robustmd.train("method=even", "training.iterations=2", *TINY, domains=domains)
    assert set(run.summary["domains"]) == {"a", "b"}
    assert repr(domains).splitlines()[0] == "DomainSet digits_mini: 2 domains, 3 classes, 32×32"
    assert "<table" in domains._repr_html_()


@pytest.mark.parametrize(
    ("overrides", "objects", "words"),
    [
        (["-m", "seed=0,1"], {}, "-m: train.* makes one run"),
        (["experiment=demo"], {}, "makes one run"),
        (["method.lam=0"], {}, "method.lam=0: must be a number > 0"),
        (["data=digits"], {"domains": {}}, "data=… and domains= are both given"),
        ([], {"domains": {"a": (1, 2)}}, "domain a: 2 arrays given"),
        (["data=from_python"], {}, "its domains were made in Python"),
        (["backbone=from_python"], {}, "its module was made in Python"),
        ([{"seed": 1}], {}, "is dict; settings are text"),
        ([], {"domains": [1]}, "domains=…: is list; must be a DomainSet or a dict"),
        ([], {"model": 5}, "model=…: is int; must be a torch.nn.Module, or a class or function"),
        (
            ["data=digits_mini"],
            {"model": torch.nn.Linear(4, 2)},
            r"the model fails for float32 .8,",
        ),
        ([], {"domains": {"a": features(0)}, "model": torch.nn.Linear(5, 3)}, r"gives \[8, 3\]"),
        (["data=digits_mini"], {"model": torch.nn.ReLU()}, "no parameter of the model is trained"),
    ],
)
def test_a_mistake_is_one_line(folder: Path, overrides, objects, words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        robustmd.train(*overrides, **objects)
    assert "\n" not in str(error.value)


def test_what_is_no_run_is_said(folder: Path, outputs) -> None:
    for place, words in ((folder, r"has no config\.yaml"), ("nowhere", "no such folder")):
        with pytest.raises(UserError, match=f"no run directory .*{words}.*robustmd runs FOLDER"):
            robustmd.load_run(place)
    path = outputs.run(data="digits_mini", extra={"status": "interrupted", "iterations_done": 40})
    found = robustmd.load_run(path)
    assert (found.status, len(found.metrics)) == ("interrupted", 4)
    for which, kept in (("last", "final"), ("best", "best")):
        with pytest.raises(UserError, match=f"no {kept} model"):
            found.model(which)
