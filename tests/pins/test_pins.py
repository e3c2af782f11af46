"""Later code against the pins: `python tests/pins/make.py --check` says the same at a prompt."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pins import commands, make, runs

from robustmd.registry import AUGMENTATIONS, BACKBONES, DATA, LOSSES, METHODS, METRICS


@pytest.fixture(scope="module", autouse=True)
def _workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with make.workplace(tmp_path_factory.mktemp("pins")):
        yield
    # Other tests in this process look at all that is registered.
    sys.modules.pop("pins.options", None)
    for known in (
        AUGMENTATIONS,
        LOSSES,
        METRICS,
        *(r._options for r in (BACKBONES, DATA, METHODS)),
    ):
        for name in [name for name in known if name.startswith("pinned")]:
            del known[name]


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


def some_slow(cases: list[str], fast: list[str]) -> list[Any]:
    return [pytest.param(c, marks=[] if c in fast else pytest.mark.slow) for c in cases]


@pytest.mark.parametrize("case", some_slow(commands.LISTS, commands.SMALL))
def test_a_preset_lists_the_runs_that_it_listed(case: str) -> None:
    assert not make.compare("lists", case)


@pytest.mark.slow
@pytest.mark.parametrize("case", commands.FAIR)
def test_a_fair_preset_lists_the_runs_that_it_listed(case: str) -> None:
    assert not make.compare("fair", case)


@pytest.mark.parametrize(("code", "named", "command"), commands.mistakes())
def test_a_mistake_ends_with_its_code_and_names_its_key(
    code: int, named: str, command: str
) -> None:
    ended, message = commands.mistake(command)
    assert ended == code
    assert named in message
    assert "Traceback" not in message


@pytest.mark.parametrize("case", some_slow(commands.REPORTS, commands.SMALL_REPORTS))
def test_a_report_of_published_runs_has_its_numbers(case: str) -> None:
    assert not make.compare("reports", case)


def test_the_fair_tables_are_as_they_were() -> None:
    assert not make.compare("fair_tables", "printed")


@pytest.mark.parametrize("case", commands.NAMES)
def test_public_names_stay(case: str) -> None:
    assert not make.compare("names", case)
