"""Any key=value on the command line: settings that are in range, or code 2 with one line."""

from pathlib import Path

import pytest
from faults.fuzzing import ends_well, fuzz
from hypothesis import strategies as st

from robustmd.config import settings, validation
from robustmd.config.identity import number_changing
from robustmd.config.keys import all_keys
from robustmd.training import run as run_module
from robustmd.training.run import Outcome

GROUPS = ("data", "backbone", "method", "training", "evaluation", "runtime", "experiment")
KEYS = ["seed", "force", "resume", "method", "training", "paths", "data.name", "method.name"]
KEYS += sorted({key.name for key in all_keys()})
OPTIONS = "opt even individual ot digits digits_mini folder alexnet demo default null none"
WORDS = (
    "true null auto nan inf -inf 0 -1 1e400 1e-400 0,1 [] [0.5,0.5] [[0,1],[1,0]] {} {a:1} "
    "${seed} ${oc.env:HOME} ${nope} ${ ${oc.create:{a:1}} é a,b = \\ ' cuda:99 ../.."
)
MORE_WORDS = ("", "'a b'", "\0", "9" * 30, "9" * 400)
NUMBERS = st.one_of(st.integers(), st.floats()).map(str)
VALUES = st.one_of(
    st.sampled_from((*WORDS.split(), *MORE_WORDS)),
    NUMBERS,
    st.sampled_from(OPTIONS.split()),
    st.text(max_size=6),
)


def override(keys: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = st.sampled_from(("", "", "", "+", "++", "~"))
    return st.builds(lambda sign, key, value: f"{sign}{key}={value}", signs, keys, VALUES)


def is_for_us(argument: str) -> bool:
    """Not a flag, and none of Hydra's own settings, which may run and write what they like."""
    return not argument.startswith("-") and "hydra" not in argument


OVERRIDES = st.one_of(
    override(st.sampled_from(KEYS)),
    override(st.sampled_from(GROUPS)),
    override(st.text(max_size=8)),
    st.text(max_size=8),
).filter(is_for_us)


@pytest.mark.parametrize("examples", [30, pytest.param(1500, marks=pytest.mark.slow)])
def test_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    seen: list[settings.Config] = []

    def only_validate(config: settings.Config, *_: object) -> Outcome:
        validation.validate(config)
        seen.append(config)
        return Outcome("kept", Path("run"), "fine", 0)

    monkeypatch.setattr(run_module, "run", only_validate)
    monkeypatch.chdir(tmp_path)

    def check(overrides: list[str]) -> None:
        seen.clear()
        code = ends_well(["train", *overrides])
        assert (code == 0) == bool(seen)
        for config in seen:  # what comes out can be told from another run
            number_changing(settings.as_dict(config))
        assert not list(tmp_path.iterdir())

    fuzz(examples, st.lists(OVERRIDES, min_size=1, max_size=3), check)


@pytest.mark.parametrize("override", ["+=digits", "\r", "a\nb=1", "row=*", "seed=\x1b[31m"])
def test_what_once_ended_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ends_well(["train", override]) == 2
