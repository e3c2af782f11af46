"""The command of a run, from what its directory recorded, leads to that run."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_module
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from tiny import composed

from robustmd.runs import rerun
from robustmd.runs.identity import config_hash
from robustmd.settings import as_dict, number_changing


def test_what_was_typed_is_typed_again_but_for_where_and_how() -> None:
    typed = [
        "method=opt",
        "method.lam=0.1",
        "seed=3",
        "force=true",
        "paths.outputs=x",
        "resume=false",
    ]
    found = rerun.overrides({}, {"overrides": typed}, outputs=Path("/data/my runs"))
    assert found == ["method=opt", "method.lam=0.1", "seed=3", "paths.outputs='/data/my runs'"]
    assert shlex.split(rerun.command(found)) == ["robustmd", "train", *found]


def test_another_seed_takes_the_place_of_the_runs_own() -> None:
    found = rerun.overrides({}, {"overrides": ["seed=3", "method=even"]}, seed=5)
    assert found == ["method=even", "seed=5"]


def test_relative_data_are_found_from_anywhere() -> None:
    environment = {"overrides": ["data=folder", "data.root=my/images"], "folder": "/home/a b"}
    found = rerun.overrides({}, environment)
    assert found == ["data=folder", "data.root='/home/a b/my/images'"]


@pytest.mark.parametrize(
    "overrides",
    [
        ["method=opt", "method.lam=0.25", "seed=4"],
        ["method=individual", "method.domain=1", "data.validation=0.1"],
        ["data=digits", "data.svhn.extra=true", "method=even", "method.prior=[0.2,0.8]"],
        ["method=ot", "method.cost=[[0,1],[1,0]]", "training.schedule=constant"],
        ["data=folder", "data.root='/a b/{c}'", "method=kl", "evaluation.every=7"],
    ],
)
def test_without_a_record_the_config_alone_gives_the_same_run(overrides: list[str]) -> None:
    config = as_dict(composed(*overrides))
    again = as_dict(composed(*rerun.overrides(config, {})))
    assert config_hash(number_changing(again)) == config_hash(number_changing(config))
    assert again["seed"] == config["seed"]


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet="ab 1.,:={}[]()$\\'\"/~é#&|;null", max_size=10),
)


@settings(max_examples=25, deadline=None)
@given(
    st.one_of(values, st.lists(values, max_size=3), st.dictionaries(st.sampled_from("ab"), values))
)
def test_hydra_reads_a_written_value_as_it_was(value: Any) -> None:
    with initialize_config_module("robustmd.conf", version_base="1.3"):
        found = compose("config", overrides=[f"+extra={rerun.hydra_value(value)}"])
    assert OmegaConf.to_container(found, resolve=True)["extra"] == value  # type: ignore[call-overload, index]
