"""Small runs, finished and cut off, made once for all tests of faults."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults.tries import SETTINGS
from rich.console import Console
from tiny import composed_into, synthetic_domains

from robustmd.errors import UserError
from robustmd.training import evaluate as evaluation
from robustmd.training import plan as plan_module
from robustmd.training import run as run_module
from robustmd.training.run import Outcome

Train = Callable[..., Outcome]


@pytest.fixture(scope="module")
def train() -> Iterator[Train]:
    """Trains in this process on tiny domains, which every command loads; returns the outcome."""
    domains = synthetic_domains()

    def go(outputs: Path, *overrides: str) -> Outcome:
        config = composed_into(outputs, *SETTINGS, *overrides)
        return run_module.run(config, Console(file=io.StringIO()), [*SETTINGS, *overrides])

    with pytest.MonkeyPatch.context() as patch:
        for module in (plan_module, evaluation):
            patch.setattr(module, "load_domains", lambda config, say: domains)
        yield go


def refused(train: Train, outputs: Path, *overrides: str) -> str:
    """The one line that ends it."""
    with pytest.raises(UserError) as error:
        train(outputs, "method=opt", *overrides)
    (line,) = str(error.value).splitlines()
    return line


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module.Run, "finish", dying)
        with pytest.raises(Killed):
            train(outputs, "method=opt")
    (directory,) = outputs.glob("*/*/*/seed=0")
    return directory
