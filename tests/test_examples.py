"""The examples run, with few steps, and do what they say."""

import importlib
import json
import re
from pathlib import Path

import pytest
import torch

from robustmd import cli
from robustmd.adversary import TopK

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


@pytest.fixture
def example(monkeypatch):
    """Imports one by its name, as its own command does; registered names are there once."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


def test_every_example_is_here():
    tested = Path(__file__).read_text("utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f'example("{path.stem}")' in tested
        assert f"python {path.name}" in path.read_text("utf-8").replace("examples/", "")


@pytest.mark.parametrize("page", ["README.md", "docs/own_loop.md"])
def test_the_loop_on_the_page_runs(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    (loop,) = (block for block in blocks if "for inputs" in block)
    model = torch.nn.Linear(3, 2)
    batches = [(torch.randn(8, 3), torch.arange(8) % 2, torch.arange(8) // 4)] * 3
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    names = {"model": model, "batches": batches, "optimizer": optimizer}
    exec(loop, names)
    assert int(names["adversary"].steps) == 3


def test_a_loop_of_ones_own_leans_to_the_noisy_domain(example):
    clear, noisy = example("own_loop").main(60).tolist()
    assert noisy > clear


@pytest.mark.parametrize("adversary", [None, TopK(2, 1)], ids=["next", "current"])
def test_accumulation_has_one_update_for_each_step_of_the_optimizer(example, adversary):
    trained = example("accumulation_amp").main(3, adversary)
    assert int(trained.steps) == 3
    assert trained.weights.sum().item() == pytest.approx(1)


def test_parts_of_a_batch_are_weighed_as_the_whole(example):
    module = example("accumulation_amp")
    torch.manual_seed(0)
    parts = [module.batch(8) for _ in range(4)]
    found = []
    for given in (parts, [tuple(map(torch.cat, zip(*parts, strict=True)))]):
        torch.manual_seed(1)
        model, adversary = torch.nn.Linear(2, 2), TopK(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        module.step(model, optimizer, torch.amp.GradScaler(enabled=False), adversary, given)
        found.append((adversary.weights, adversary.losses, model.weight.grad))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-2, atol=1e-3)  # bfloat16


def test_the_worst_group_of_a_table_does_better_than_under_the_plain_mean(example):
    found = example("tabular_groups").main(150)
    assert found["group DRO"] > found["plain mean"] + 5


def test_domains_from_tensors_by_name_and_in_python(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = ["backbone.width=0.1", "training.iterations=2", "training.batch_size=6"]
    run = example("own_domains").main(*settings)
    assert run.summary["domains"] == ["bright", "dark"]
    assert cli.main(["train", "imports=[own_domains]", "data=shades", "method=opt", *settings]) == 0
    assert "worst" in capsys.readouterr().out


def test_a_lightning_module(example):
    pytest.importorskip("lightning")
    module = example("lightning_module").main(3)
    assert int(module.adversary.steps) == 3
    assert "adversary.p" in module.state_dict()


def test_a_hugging_face_trainer(example):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    trainer = example("trainer_text_sources").main(3)
    assert int(trainer.adversary.steps) == 3
    assert not torch.allclose(trainer.adversary.weights, torch.full((3,), 1 / 3), atol=1e-7)


def test_a_search_goes_on_and_prunes(example, tmp_path, monkeypatch, prepared_cache):
    monkeypatch.setenv("ROBUSTMD_CACHE", str(prepared_cache))
    optuna = pytest.importorskip("optuna")
    tune = example("tune")
    storage = f"sqlite:///{tmp_path / 'tune.db'}"
    small = (
        *("training.iterations=4", "evaluation.every=2", "evaluation.examples=20"),
        *("training.warmup=0", "runtime.threads=1", f"paths.outputs={tmp_path / 'outputs'}"),
    )
    first = tune.main(2, storage, *small)
    assert len(first.trials) == 2
    monkeypatch.setattr(optuna.Trial, "should_prune", lambda trial: True)
    again = tune.main(3, storage, *small)
    assert len(again.trials) == 3
    states = [trial.state.name for trial in again.trials]
    assert states == ["COMPLETE", "COMPLETE", "PRUNED"]
    assert again.best_value == min(trial.value for trial in first.trials)
    statuses = sorted(
        json.loads(path.read_text())["status"]
        for path in (tmp_path / "outputs").glob("*/*/*/*/summary.json")
    )
    assert statuses == ["finished", "finished", "interrupted"]


def test_a_mixture_of_texts_is_found_in_three_steps(example):
    weights, before, after = example("language_model").main(steps=60)
    assert weights.sum().item() == pytest.approx(1, abs=1e-5)
    assert (weights > 0).all()
    assert all(1 < perplexity < 128 for perplexity in (*before, *after))
