"""What is given from Python counts by all that it computes with: any change trains anew, and the
same object in a new process finds its run."""

import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tiny import TINY, synthetic_domains

import robustmd
from robustmd import cli
from robustmd.digest import digest_of
from robustmd.domains import DomainSet
from robustmd.domains.domain_set import Domain
from robustmd.errors import UserError
from robustmd.python import _by_content

SOURCE = """
import functools
import threading
import torch
from torch import nn

SCALE, WEIGHTS = 2.0, torch.ones(2)
FACTORS = {"first": 1.0}

def scaled(x):
    return x * SCALE

class Parent(nn.Module):
    def forward(self, x):
        return self.head(self.layer(x)) * self.factor

class Net(Parent):
    gain = 1.0
    kinds = {"a", "b", "c"}

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            4, nhead=2, dim_feedforward=8, norm_first=False, activation="relu"
        )
        self.head = nn.Linear(4, 2)
        self.factor = 1.0
        self.options = {"depth": [1, 2]}
        self.register_buffer("shift", torch.zeros(1), persistent=False)
        self.hook = self.register_forward_hook(lambda module, inputs, outputs: outputs * 1.5)

    @functools.cached_property
    def cached(self):
        return self.gain in (1.0, 3.0)

class Weigher:
    power = 1.0
    def loss(self, outputs, labels, smoothing=0.1):
        return nn.functional.cross_entropy(outputs, labels, reduction="none") ** self.power

def made(weigher, smoothing):
    def loss(outputs, labels, *, eps=0.5):
        values = weigher.loss(outputs, labels, smoothing)
        return scaled(values) * WEIGHTS[labels] * FACTORS["first"] + eps
    return loss

torch.manual_seed(0)
model = Net()
weigher = Weigher()
objects = (model, made(weigher, 0.1), weigher.loss, Net, functools.partial(scaled, x=1.0))
# here
"""

CHANGES = {
    "a number of heads": ("nhead=2", "nhead=4"),
    "the order of a norm": ("norm_first=False", "norm_first=True"),
    "an activation by name": ('activation="relu"', 'activation="gelu"'),
    "an activation": ('activation="relu"', "activation=torch.tanh"),
    "an attribute": ("self.factor = 1.0", "self.factor = 50.0"),
    "an attribute within another": ('"depth": [1, 2]', '"depth": [1, 3]'),
    "a buffer that is not saved": ("torch.zeros(1)", "torch.ones(1)"),
    "a hook": ("outputs * 1.5", "outputs * 2.5"),
    "one more hook": ("# here", "model.head.register_forward_hook(lambda *_: None)"),
    "a parent's forward": ("* self.factor", "+ self.factor"),
    "a class attribute": ("gain = 1.0", "gain = 3.0"),
    "a slot": ("    gain = 1.0", "    gain, __slots__ = 1.0, ('extra',)"),
    "a set": ('"b", "c"', '"b", "d"'),
    "a cached property": ("self.gain in (1.0, 3.0)", "self.gain in (1.0, 4.0)"),
    "a method put in later": ("# here", "Net.forward = lambda self, x: self.head(x)"),
    "a method of one object": ("# here", "model.forward = (lambda s, x: x).__get__(model)"),
    "a frozen parameter": ("# here", "model.head.bias.requires_grad_(False)"),
    "shared weights": ("# here", "model.layer.norm1.bias = model.layer.norm2.bias"),
    "a default argument": ("smoothing=0.1", "smoothing=0.2"),
    "a default by keyword": ("eps=0.5", "eps=0.6"),
    "a number closed over": ("made(weigher, 0.1)", "made(weigher, 0.3)"),
    "a tensor that is global": ("torch.ones(2)", "torch.ones(2) * 2"),
    "a dict that is global": ('{"first": 1.0}', '{"first": 2.0}'),
    "a function that is called": ("x * SCALE", "x / SCALE"),
    "a number that this function uses": ("SCALE, WEIGHTS = 2.0", "SCALE, WEIGHTS = 3.0"),
    "another object's bound method": ("power = 1.0", "power = 2.0"),
    "an argument bound": ("x=1.0", "x=2.0"),
    "one and true": ("self.factor = 1.0", "self.factor = True"),
    "torch's own function replaced": ("# here", "nn.functional.cross_entropy = lambda *_, **__: 1"),
    "torch's own layer replaced": ("# here", "nn.Linear.forward = lambda self, x: x"),
    "a hook of all modules": ("# here", "nn.modules.module.register_module_forward_hook(print)"),
}  # fmt: skip


def digest(source: str, file: str = "cell 1") -> str:
    """Of the objects that a notebook's cell makes."""
    space = {"__name__": "__main__"}
    exec(compile(source, file, "exec"), space)
    return digest_of(space["objects"])[0]


@pytest.fixture(scope="module")
def before() -> str:
    return digest(SOURCE)


@pytest.fixture
def untouched_torch(monkeypatch: pytest.MonkeyPatch):
    """Torch as it is, whatever a change does to it."""
    hooks = torch.nn.modules.module._global_forward_hooks
    monkeypatch.setattr(torch.nn.functional, "cross_entropy", torch.nn.functional.cross_entropy)
    monkeypatch.setattr(torch.nn.Linear, "forward", torch.nn.Linear.forward)
    yield
    hooks.clear()


@pytest.mark.parametrize(("old", "new"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_another_object(before: str, untouched_torch, old: str, new: str) -> None:
    assert old in SOURCE
    assert digest(SOURCE.replace(old, new)) != before


def test_a_module_imported_within_a_function_counts(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "steps").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    cell = "def objects(x):\n    from . import ops\n    return ops.act(x)\n"
    digests = set()
    for factor in (1, 22, 22):
        (tmp_path / "steps" / "__init__.py").write_text("")
        (tmp_path / "steps" / "ops.py").write_text(f"def act(x):\n    return x * {factor}.0\n")
        space: dict[str, Any] = {"__name__": "steps.main", "__package__": "steps"}
        exec(cell, space)
        digests.add(digest_of(space["objects"])[0])
        for name in ("steps", "steps.ops"):
            del sys.modules[name]
    assert len(digests) == 2


def test_a_cell_that_is_executed_again_makes_the_same_objects(before: str) -> None:
    assert digest("\n# further down\n" + SOURCE, "cell 2") == before


MODELS = """
import helper
from torch import nn

class Net(nn.Module):
    def __init__(self, facts):
        super().__init__()
        self.head = nn.Linear(5, facts.num_classes)

    def forward(self, x):
        from helper import activation
        return activation(self.head(x))

def loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels, reduction="none") * helper.SCALE
"""
STUDY = """
import models, numpy, robustmd
x, y = numpy.arange(200.).reshape(40, 5).astype("f4") % 7, numpy.arange(40) % 2
run = robustmd.train(
    "training.iterations=1", "training.batch_size=8", "runtime.threads=1",
    domains={"a": (x, y, x, y), "b": (x + 1, y, x, y)}, model=models.Net, loss=models.loss,
)
print(run.path)
"""


def test_a_new_process_finds_the_run_until_a_helper_changes(tmp_path: Path) -> None:
    def trained(models: str, helper: str, hash_seed: str) -> tuple[str, str]:
        """What is printed, and the run's directory."""
        for name, source in (("models", models), ("helper", helper), ("study", STUDY)):
            (tmp_path / f"{name}.py").write_text(source)
        done = subprocess.run(
            [sys.executable, "study.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout, done.stdout.splitlines()[-1]

    helper = "SCALE = 1.0\ndef activation(x):\n    return x\n"
    first, path = trained(MODELS, helper, "1")
    assert "finished before" not in first
    again, same_path = trained(f"# a comment\n{MODELS}", helper, "2")
    assert same_path == path
    assert re.search(
        r"finished before.*; the same model Net_\w{12}, loss loss_\w{12}, domains \w{12}$",
        again,
        re.M,
    )
    assert trained(MODELS, helper.replace("1.0", "2.0"), "1")[1] != path
    assert trained(MODELS, helper.replace("return x", "return 2 * x"), "1")[1] != path


def test_domains_count_by_all_that_they_hold() -> None:
    ds = synthetic_domains()
    by_hand = DomainSet.of("x", [Domain(one.name, one.splits) for one in ds], ds.classes)
    brighter = [
        Domain(
            one.name,
            {split: replace(of, all_images=of.all_images + 1) for split, of in one.splits.items()},
        )
        for one in ds
    ]
    variants = (
        *(by_hand, DomainSet.of("x", brighter, ds.classes)),
        *(ds.with_validation(0.1, 0), ds.with_validation(0.5, 0), replace(ds, labels="per_domain")),
    )
    assert len({_by_content(variant).fingerprint for variant in variants}) == 5
    assert _by_content(ds).fingerprint == _by_content(synthetic_domains()).fingerprint


def arrays() -> tuple[np.ndarray, ...]:
    x = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    return x[:40], y[:40], x[40:], y[40:]


def trained(*settings: str, **objects: object) -> robustmd.Run:
    short = ("training.iterations=1", *TINY[1:], *settings)
    return robustmd.train(*short, **{"domains": {"a": arrays(), "b": arrays()}, **objects})


def by_globals(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return globals()["nothing"](outputs, labels)


class Locked(torch.nn.Linear):
    """A module that cannot be compared: it holds a lock."""

    def __init__(self) -> None:
        super().__init__(5, 2)
        self.lock = threading.Lock()

    def __deepcopy__(self, _: object) -> "Locked":
        return Locked()


def test_what_cannot_be_compared_needs_a_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r'^model=Locked: has a lock, .* give name="…"'):
        trained(model=Locked())
    model = Locked()
    first = trained(model=model, name="first").path
    assert trained(model=model, name="first").path == first != trained(model=model, name="b").path
    with torch.no_grad():
        model.weight += 1  # it can be compared, and still counts
    assert trained(model=model, name="first").path != first
    with pytest.raises(UserError, match=r"^name=first: nothing given needs it; leave it out"):
        trained(model=torch.nn.Linear(5, 2), name="first")
    with pytest.raises(UserError, match=r"^loss=by_globals: has globals\(\) in by_globals, which"):
        trained(model=torch.nn.Linear(5, 2), loss=by_globals)


class Net(torch.nn.Linear):
    """Its first weights are drawn as it is made."""

    def __init__(self) -> None:
        super().__init__(5, 2)


def test_a_class_draws_new_weights_for_each_seed(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [
        trained(f"method={method}", f"seed={seed}", model=Net)
        for method in ("even", "opt")
        for seed in (0, 1, 2)
    ]
    assert "warning" not in capsys.readouterr().out
    assert len({run.path.parent for run in runs}) == 2
    assert cli.main(["report", "outputs", "--no-figures"]) == 0
    table = pd.read_csv(tmp_path / "report" / "from_python" / "table.csv")
    assert sorted(table["n"]) == [3, 3]
    first = {run.metrics.loss[0] for run in runs}
    assert len(first) == 3
    assert runs[0].model().weight.shape == robustmd.load_run(runs[0].path, Net).model().weight.shape
    trained("seed=1", model=Net())
    assert "warning: model= is a module, so runs of all seeds" in capsys.readouterr().out
    by_facts = trained(model=lambda facts: torch.nn.Linear(5, facts.num_classes))
    assert by_facts.config["backbone"]["object"].startswith("lambda_")


@pytest.mark.parametrize("name", [0, "a\nb", "a/b", "..", ""])
def test_a_domains_name_is_refused(name: object) -> None:
    with pytest.raises(UserError, match="must be text, 1 to 200 printable") as error:
        DomainSet.from_tensors({name: arrays(), "b": arrays()})
    assert "\n" not in str(error.value)


class Random(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index >= 8:
            raise IndexError
        return torch.rand(5), index % 2


def test_a_dataset_that_draws_is_noted(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    run = trained(domains={"a": (Random(), Random()), "b": arrays()}, model=Net)
    assert "warning: the Dataset of a gives other items when read again" in capsys.readouterr().out
    assert "data.augment=standard" in run.summary["notes"][0]
