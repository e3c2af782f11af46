"""Later code against the pins: `python tests/pins/make.py --check` says the same at a prompt."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pins import make, runs


@pytest.fixture(scope="module", autouse=True)
def _workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with make.workplace(tmp_path_factory.mktemp("pins")):
        yield


@pytest.mark.parametrize("case", runs.CONFIGURATIONS)
def test_a_run_writes_what_it_wrote(case: str) -> None:
    assert not make.compare("training", case)


@pytest.mark.parametrize("case", make.images.SETS)
def test_a_data_set_has_the_images_that_it_had(case: str) -> None:
    assert not make.compare("images", case)


FAST = [("signalled adamw, ema", "SIGTERM:6"), ("signalled keep best, patience", "SIGKILL:11")]


@pytest.mark.parametrize(
    ("case", "sent"),
    [
        pytest.param(case, sent, marks=[] if (case, sent) in FAST else pytest.mark.slow)
        for case in runs.SIGNALLED
        for sent in runs.SIGNALS
    ],
)
def test_a_run_that_was_stopped_or_killed_ends_as_one_that_was_not(
    case: str, sent: str, tmp_path: Path
) -> None:
    kept = make.read("training")
    record = runs.train_with_signal(case, sent, tmp_path)
    assert not make.differences(kept["pins"][case], record, make.closeness("training", case))
