"""One run by several processes of torchrun: what it writes is what one process writes."""

import copy
import io
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from tiny import ADAMW, composed, many, rows, signalled_at, summary, synthetic_domains
from torch import nn

from robustmd.config.composing import publish
from robustmd.config.loading import with_own_labels
from robustmd.domains.noise import noise_copies
from robustmd.domains import DomainSet
from robustmd.errors import UserError
from robustmd.registry import AUGMENTATIONS, Augmentation
from robustmd.training import run as run_module
from robustmd.training.batches import BatchStream
from robustmd.training.plan import Plan
from robustmd.training.pool import TrainingPool, resident_splits
from robustmd.training.distributed import Ranks, here, joined

TESTS = Path(__file__).parent.parent
CPU = torch.device("cpu")
WORDS = ("split", "domain", "metric")  # columns that are no numbers
SIX = ("method=opt", "training.batch_size=4")  # of six domains: K > B
QUICK: dict[str, tuple[str, ...]] = {  # its first word says of which data
    "two domains": ("method=opt", "training.batch_size=15"),
    "six domains": SIX,
    "two domains: stopped": ("method=opt", "training.batch_size=21"),
}
ALL = QUICK | {
    "six domains: a rank has none of some": ("method=opt", "training.batch_size=7"),
    "two domains: the current batch weighed": ("method=groupdro",),
    "two domains: full losses": ("method=best_response", "method.every=4"),
    "two domains: oracle": ("method=oracle", "method.every=4"),
    "two domains: averages": ("method=minimax",),
    "two domains: adamw": tuple(ADAMW),
    "two domains: shares": ("data.shares=[0.3,0.7]",),
    "two domains: augmented": ("data.augment=standard",),
    "two domains: frozen": ("backbone.freeze_bn=true",),
    "two domains: one trained": ("method=individual", "method.domain=1"),
    "two domains: metrics": (
        "evaluation.metrics=[ece,macro_accuracy]",
        "evaluation.examples=50",
    ),
    "noisy": SIX,
    "labelled": ("method=opt",),
    "validated": ("data.validation=0.2", "evaluation.keep=best_val", "training.patience=2"),
}
DROPOUT = ("method=opt", "backbone.dropout=0.5")


def data(name: str) -> DomainSet:
    two, kind = synthetic_domains(), name.split(maxsplit=1)[0]
    if kind == "labelled":
        return with_own_labels(two, lambda _: None)
    if kind == "noisy":
        return noise_copies(two, "a", [0, 10, 20, 30, 40, 50], "digits_mini")
    return {"six": many(6), "validated": two.with_validation(0.2, 0)}.get(kind, two)


def train(outputs: Path, name: str, *overrides: str) -> run_module.Outcome:
    """The run of `ALL`, by the processes that this one is among."""
    small = [
        *("training.iterations=20", "training.batch_size=20", "backbone.width=0.05"),
        *("runtime.threads=1", "runtime.device=cpu", "evaluation.every=5", "logging.every=1"),
        *(
            "checkpoint.every=4",
            "evaluation.predictions=false",
            f"paths.outputs='{outputs / name}'",
        ),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "load_domains", lambda config, say: data(name))
        config = composed(*small, *ALL.get(name, ()), *overrides)
        return run_module.run(config, Console(file=io.StringIO()))


def work(outputs: Path, *names: str) -> None:
    """What each process does. Where a run is to be stopped, the last one gets the signal."""
    ranks = here()
    for name in names:
        overrides = DROPOUT if name.startswith("dropout") else ()
        if name.endswith("stopped"):
            at = 6 if ranks.index == ranks.size - 1 else -1
            with signalled_at(at):
                outcome = train(outputs, name, *overrides)
            assert (outcome.status, outcome.exit_code) == ("interrupted", 143)
            assert not ranks.is_first or summary(outcome.directory)["iterations_done"] == 7
        assert train(outputs, name, *overrides).status == "finished"
        assert train(outputs, name, *overrides).status == "kept"


def by_processes(size: int, outputs: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """The runs by `size` processes, of which this is the first."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    facts = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
    others = [
        subprocess.Popen(
            [sys.executable, __file__, str(outputs), *names],
            env={**os.environ, **facts, "RANK": str(index), "PYTHONPATH": str(TESTS)},
        )
        for index in range(1, size)
    ]
    for key, value in {**facts, "RANK": "0"}.items():
        monkeypatch.setenv(key, value)
    try:
        with joined():
            work(outputs, *names)
        assert [other.wait(60) for other in others] == [0] * (size - 1)
    finally:
        for other in others:
            other.kill()
            other.wait()


def columns(directory: Path, table: str) -> tuple[list[list[str]], list[list[float]]]:
    """A table's words and its numbers, row by row."""
    found = rows(directory, table)
    assert found
    words = [[row[key] for key in WORDS if key in row] for row in found]
    return words, [[float(row[key] or "nan") for key in row if key not in WORDS] for row in found]


def of(outputs: Path, name: str) -> Path:
    (directory,) = (outputs / name).glob("*/*/*/seed=0")
    return directory


def assert_close(one: Path, other: Path) -> None:
    """Every number of every row of two runs to 1e-5."""
    further = ["measures.csv"] * (one / "measures.csv").exists()
    for table in ("metrics.csv", "weights.csv", *further):
        (words, ours), (same_words, theirs) = columns(one, table), columns(other, table)
        assert words == same_words
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, err_msg=f"{one}: {table}")


@pytest.mark.parametrize(
    ("size", "names"),
    [
        (2, [*QUICK]),
        pytest.param(2, [*ALL], marks=pytest.mark.slow),
        pytest.param(3, [*ALL], marks=pytest.mark.slow),
    ],
)
def test_several_processes_write_what_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, names: list[str]
) -> None:
    by_processes(size, tmp_path, monkeypatch, *names)
    for name in names:
        alone = train(tmp_path / "alone", name)
        assert alone.status == "finished"
        assert_close(of(tmp_path, name), alone.directory)


@pytest.mark.slow
def test_processes_that_stopped_go_on_as_if_they_had_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("dropout", "dropout: stopped")
    by_processes(2, tmp_path, monkeypatch, *names)
    whole, resumed = (of(tmp_path, name) for name in names)
    for table in ("metrics.csv", "weights.csv"):
        assert rows(whole, table) == rows(resumed, table)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    ("kind", "batch_size", "drawn", "shares"),
    [
        ("two", 15, None, None),
        ("six", 9, 4, None),
        ("noisy", 4, 4, None),
        ("two", 9, None, [1.0, 3.5]),
        ("labelled", 14, None, None),
    ],
)
def test_parts_of_a_batch_are_the_batch(
    size: int, kind: str, batch_size: int, drawn: int | None, shares: list[float] | None
) -> None:
    domains = data(kind)
    given = ({d.name: d.train for d in domains}, batch_size, 0, drawn, shares)
    augmentation = AUGMENTATIONS["standard"]
    whole = BatchStream(*given, augmentation)
    parts = [BatchStream(*given, augmentation, (i, size)) for i in range(size)]
    splits = [*resident_splits(domains, CPU)["train"].values()]
    pool = TrainingPool(splits, whole.counts, augmentation)
    draw = whole.draw(7)
    images, labels = pool.gather(draw)
    losses = torch.arange(1.0, len(labels) + 1)
    sums = torch.zeros(whole.domains_per_batch)
    for index, part in enumerate(parts):
        mine = part.part_of(part.draw(7))
        every = slice(index, None, size)
        some, their_labels = pool.gather(mine)
        torch.testing.assert_close(some, images[every])
        assert torch.equal(their_labels, labels[every])
        absent, of_all = pool.absent_classes(mine), pool.absent_classes(draw)
        if absent is not None and of_all is not None:
            assert torch.equal(absent, of_all.repeat_interleave(whole.share, dim=0)[every])
        sums += part.means(losses[every])
    means = whole.means(losses if shares else losses.view(len(sums), -1).mean(1))
    torch.testing.assert_close(sums, means)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["runtime.compile=true"], "runtime.compile=true"),
        (["training.batch_size=2"], "training.batch_size=2: must have an example for each"),
        (["data.augment=whole"], "data.augment=whole: draws for a whole batch"),
    ],
)
def test_what_several_processes_cannot_do_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overrides: list[str], words: str
) -> None:
    monkeypatch.setitem(AUGMENTATIONS, "whole", Augmentation("whole", lambda x: x, None))
    config = composed(f"paths.outputs={tmp_path}", *overrides)
    plan = Plan.of(config, synthetic_domains(), CPU)
    with pytest.raises(UserError, match=words):
        Ranks(1, 3).check(plan)
    Ranks().check(plan)


class OwnNorm(nn.BatchNorm2d):
    """As timm has some: with an activation in it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).relu()


def test_a_batch_norm_that_is_none_of_torchs_is_refused_unless_it_is_frozen() -> None:
    model = nn.Sequential(OwnNorm(3))
    Ranks().connect_batch_norm(model)
    with pytest.raises(UserError, match="OwnNorm is no plain batch norm"):
        Ranks(0, 2).connect_batch_norm(model)
    Ranks(0, 2).connect_batch_norm(model.eval())


@pytest.mark.parametrize("size", [[12, 3], [12, 3, 5, 4]])
@pytest.mark.parametrize("kind", [{}, {"momentum": None}, {"affine": False}])
def test_batch_norm_over_processes_is_torchs_where_there_is_one(
    size: list[int], kind: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    plain = (nn.BatchNorm1d if len(size) == 2 else nn.BatchNorm2d)(3, **kind)
    connected = copy.deepcopy(plain)
    Ranks(0, 2).connect_batch_norm(
        nn.Sequential(connected, nn.Linear(1, 1))
    )  # no sum: `here` is one process
    for _ in range(2):
        inputs = [torch.randn(size) + 2]
        inputs = [inputs[0].requires_grad_(), inputs[0].detach().clone().requires_grad_()]
        seen = [module(x) for module, x in zip((plain, connected), inputs, strict=True)]
        torch.testing.assert_close(*seen)
        for outputs in seen:
            (outputs.sin() * torch.arange(3).view(3, *[1] * (len(size) - 2))).sum().backward()
        torch.testing.assert_close(inputs[0].grad, inputs[1].grad)
    torch.testing.assert_close(plain.state_dict(), connected.state_dict())
    torch.testing.assert_close(plain.eval()(inputs[0]), connected.eval()(inputs[0]))


def test_each_process_has_the_gpu_of_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setenv("LOCAL_RANK", "1")
    ranks = Ranks(5, 8)  # on the third machine
    assert ranks.device(torch.device("cuda")) == torch.device("cuda:1")
    assert chosen == [1]
    assert ranks.device(CPU) == CPU
    monkeypatch.setenv("LOCAL_RANK", "2")
    for asked in ("cuda", "cuda:0", "mps"):
        with pytest.raises(UserError, match="each needs a GPU of its own"):
            ranks.device(torch.device(asked))


COMMAND = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
DIGITS = [
    *("-m", "robustmd", "train", "data=digits_mini", "runtime.threads=1", "runtime.device=cpu"),
    *("training.iterations=60", "evaluation.every=10", "evaluation.predictions=false"),
]


@pytest.mark.slow
def test_torchrun_is_stopped_and_goes_on(tmp_path: Path) -> None:
    def command(*begin: str, outputs: str) -> list[str]:
        return [*begin, *DIGITS, f"paths.outputs={tmp_path / outputs}"]

    torchrun = command(*COMMAND, outputs="many")
    with subprocess.Popen(torchrun, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        lines = []
        while not any(b"iteration 10/" in line for line in lines):
            lines.append(agent.stdout.readline())
            assert lines[-1]
        agent.send_signal(signal.SIGTERM)
        out, _ = agent.communicate(timeout=120)
    assert out.count(b"stopped by SIGTERM after iteration") == 1
    said = subprocess.run(torchrun, capture_output=True, text=True, timeout=300, check=True).stdout
    assert said.count("resumed after iteration") == said.count("worst test accuracy") == 1
    subprocess.run(command(sys.executable, outputs="one"), timeout=300, check=True)
    assert_close(of(tmp_path, "one"), of(tmp_path, "many"))


@pytest.mark.slow
def test_torchrun_makes_no_sweep_and_says_a_mistake_once(tmp_path: Path) -> None:
    for given, line in (
        (["-m", "seed=0,1"], "robustmd: torchrun: is for one run"),
        (["methd=opt"], "robustmd: methd: no such key"),
    ):
        found = subprocess.run(
            [*COMMAND, "-m", "robustmd", "train", *given, f"paths.outputs={tmp_path}"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert found.returncode == 1  # torchrun's own
        assert found.stderr.count(line) == 1
    assert [*tmp_path.iterdir()] == []


if __name__ == "__main__":  # another process than the first
    publish()
    with joined():
        work(Path(sys.argv[1]), *sys.argv[2:])
    threads = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    assert "gloo" not in str(threads), "one that is still there can abort the process as it exits"
