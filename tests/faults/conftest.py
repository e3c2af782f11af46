"""Small runs, finished and cut off, made once for all tests of faults."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults.tries import SETTINGS
from rich.console import Console
from tiny import composed_into, synthetic_domains

from robustmd.training import evaluation, reproduction, session
from robustmd.training import run as run_module
from robustmd.training.run import Outcome

Train = Callable[..., Outcome]


@pytest.fixture(scope="module")
def train() -> Iterator[Train]:
    """Trains in this process on tiny domains, which every command loads; returns the outcome."""
    domains = synthetic_domains()
    modules = (run_module, evaluation, reproduction)
    before = [module.load_domains for module in modules]
    for module in modules:
        module.load_domains = lambda config, say: domains  # type: ignore[assignment]

    def go(outputs: Path, *overrides: str) -> Outcome:
        config = composed_into(outputs, *SETTINGS, *overrides)
        return run_module.run(config, Console(file=io.StringIO()), [*SETTINGS, *overrides])

    yield go
    for module, load in zip(modules, before, strict=True):
        module.load_domains = load


@pytest.fixture(scope="module")
def finished(train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a finished run."""
    return train(tmp_path_factory.mktemp("finished") / "outputs", "method=opt").directory


@pytest.fixture(scope="module")
def cut_off(train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the same run, which ended without a word before its last measurement."""

    class Killed(BaseException):
        pass

    def dying(*_: object) -> None:
        raise Killed

    outputs = tmp_path_factory.mktemp("cut_off") / "outputs"
    before, session.Session._finish = session.Session._finish, dying  # type: ignore[method-assign]
    try:
        with pytest.raises(Killed):
            train(outputs, "method=opt")
    finally:
        session.Session._finish = before  # type: ignore[method-assign]
    (directory,) = outputs.glob("*/*/*/seed=0")
    return directory
