"""One run by several processes of torchrun: what it writes is what one process writes."""

import io
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from tiny import ADAMW, composed, many, rows, signalled_at, summary, synthetic_domains
from torch import nn

from robustmd.config.loading import with_own_labels
from robustmd.domains import DomainSet
from robustmd.domains.noise import noise_copies
from robustmd.errors import UserError
from robustmd.registry import AUGMENTATIONS, Augmentation
from robustmd.training import plan as plan_module
from robustmd.training import run as run_module
from robustmd.training.distributed import Processes, joined
from robustmd.training.plan import make_plan

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
        patch.setattr(plan_module, "load_domains", lambda config, say: data(name))
        config = composed(*small, *ALL.get(name, ()), *overrides)
        return run_module.run(config, Console(file=io.StringIO()))


def work(outputs: Path, *names: str) -> None:
    """What each process does. Where a run is to be stopped, the last one gets the signal."""
    ranks = Processes.here()
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
    monkeypatch.setattr(plan_module, "load_domains", lambda *_: synthetic_domains())
    monkeypatch.setattr(Processes, "here", classmethod(lambda cls: cls(0, 3)))
    config = composed(f"paths.outputs={tmp_path}", *overrides)
    with pytest.raises(UserError, match=words):
        make_plan(config, [], lambda _: None)


def test_another_forward_of_the_backbone_on_one_rank_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once such a run finished with other numbers, without a word."""
    monkeypatch.setattr(Processes, "first_says", lambda self, value: f"not {value}")
    with pytest.raises(UserError, match="rank 1 has other settings, data or code"):
        Processes(1, 2).check_same("the settings and the code")


def test_batch_norm_needs_gpus_unless_it_is_frozen() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
    assert Processes().wrap(model) is model
    with pytest.raises(UserError, match=r"batch norm needs GPUs, .*backbone\.freeze_bn=true"):
        Processes(0, 2).wrap(model)


def test_each_process_has_the_gpu_of_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setenv("LOCAL_RANK", "1")
    ranks = Processes(5, 8)  # on the third machine
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
    with joined():
        work(Path(sys.argv[1]), *sys.argv[2:])
    threads = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    assert "gloo" not in str(threads), "one that is still there can abort the process as it exits"
