"""The command of a run, from what its directory recorded, leads to that run."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from tiny import composed

from robustmd.config.identity import config_hash, number_changing
from robustmd.config.plugins import in_config_dir
from robustmd.errors import printable
from robustmd.runs import rerun
from robustmd.runs.untrusted import Unreadable


def test_what_was_typed_is_typed_again_but_for_where_and_how() -> None:
    typed = [
        "method=opt",
        "experiment=demo",
        "method.lam=0.1",
        "+training.domains_per_batch=2",
        "seed=3",
        "force=true",
        "paths.outputs=/x",
        "resume=false",
    ]
    found = rerun.overrides({}, {"overrides": typed}, outputs=Path("/data/my runs"))
    typed[3] = "training.domains_per_batch=2"
    assert found == [*typed[:5], "paths.outputs='/data/my runs'"]
    assert shlex.split(rerun.command(found)) == ["robustmd", "train", *found]


def test_other_seeds_take_the_place_of_the_runs_own() -> None:
    found = rerun.overrides({}, {"overrides": ["++seed=3", "method=even"]}, seeds=[5, 6])
    assert found == ["method=even", "seed=5,6"]


@pytest.mark.parametrize(
    ("typed", "absolute"),
    [
        ("data.root=my/images", "data.root='/home/a b/my/images'"),
        ('data.root="a b"', "data.root='/home/a b/a b'"),
        ("+data.manifest=a b.csv", "data.manifest='/home/a b/a b.csv'"),
        ("backbone.weights=w.pth", "backbone.weights='/home/a b/w.pth'"),
        ("backbone.weights=imagenet", "backbone.weights=imagenet"),
        ("method.run='it\\'s'", "method.run='/home/a b/it\\'s'"),
        ("paths.data=/x", "paths.data=/x"),
        ("paths.cache='~/x'", "paths.cache='~/x'"),
        ("paths.cache=null", "paths.cache=null"),
    ],
)
def test_relative_paths_are_found_from_anywhere(typed: str, absolute: str) -> None:
    environment = {"overrides": [typed], "folder": "/home/a b"}
    assert rerun.overrides({}, environment) == [absolute]


HOSTILE = [
    "+hydra.callbacks.x={_target_: pandas.read_pickle, filepath_or_buffer: p.pkl}",
    "hydra.run.dir=/x",
    "hydra/launcher=joblib",
    "--cfg=job",
    "--config-dir=/x",
    "-m",
    "~method",
    "~training.iterations",
    "data@hydra.callbacks=x",
    "method={_target_: os.system}",
    "data=../../../tmp/x",
    "experiment=/tmp/x",
    "method=opt,even",
    "data.root=${oc.env:HOME}",
    "data.root='/x\n/y'",
    "data.root='/x\x1b]0;y\x07'",
    "data.root='/x\u202ey'",
    "data.root=x",  # relative to a folder that the record does not name
    "method\n.lam=1",
    "method.name=ot",
    "+method.unknown=1",
    "data.root=$\\{oc.env:HOME}",
    "",
]


@pytest.mark.parametrize("override", HOSTILE, ids=lambda override: override[:30].encode())
def test_no_command_is_made_of_more_than_settings_of_robustmd(override: str) -> None:
    with pytest.raises(Unreadable) as reason:
        rerun.overrides({}, {"overrides": ["method=opt", override, "seed=0"]})
    assert printable(reason.value) == str(reason.value)
    assert len(str(reason.value)) < 200


@pytest.mark.parametrize(
    "change",
    [
        {"method": {"name": "opt", "lam +hydra.x": 1}},
        {"method": {"name": "opt", "lam": {"_target_": "os.system"}}},
        {"method": {"name": "opt seed=1"}},
        {"data": {"name": "../x"}},
        {"training": {"iterations": "${oc.env:HOME}"}},
        {"paths": {"data": "/x\n/y"}},
        {"paths": {"data": "x"}},
        {"backbone": 5},
        {"seed": "0 hydra.run.dir=/x\n"},
    ],
)
def test_a_config_that_is_not_ours_makes_no_command(change: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        rerun.overrides(composed("method=opt").model_dump() | change, {})


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
    config = composed(*overrides).model_dump()
    again = composed(*rerun.overrides(config, {})).model_dump()
    assert config_hash(number_changing(again)) == config_hash(number_changing(config))
    assert again["seed"] == config["seed"]


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet="ab 1.,:={}[]()$\\'\"/~é#&|;null", max_size=10),
)


@given(
    st.one_of(values, st.lists(values, max_size=3), st.dictionaries(st.sampled_from("ab"), values))
)
def test_hydra_reads_a_written_value_as_it_was(value: Any) -> None:
    found = OverridesParser.create().parse_override(f"extra={rerun.hydra_value(value)}")
    config = OmegaConf.create({"extra": None})
    OmegaConf.update(config, "extra", found.value())  # as Hydra goes on
    assert OmegaConf.to_container(config, resolve=True) == {"extra": value}


def test_a_command_takes_the_readers_config_directory_along(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    with in_config_dir(str(tmp_path / "a b")):
        command = rerun.command(["method=opt"])
    assert command == f"robustmd train --config-dir '{tmp_path}/a b' method=opt"
    assert rerun.command(["method=opt"]) == "robustmd train method=opt"
