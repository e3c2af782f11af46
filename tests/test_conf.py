"""Every file of conf/ composes, and its values are in range."""

import re
from pathlib import Path

import pytest

import robustmd
from robustmd.config.check import make_config

CONF = Path(robustmd.__file__).parent.parent / "conf"
FILES = sorted(CONF.glob("*/*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}={p.stem}")
def test_every_option_composes_and_is_in_range(path: Path) -> None:
    if path.stem == "timm":
        pytest.importorskip("timm")  # an extra
    make_config([f"{path.parent.name}={path.stem}"])


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}={p.stem}")
def test_every_option_begins_with_what_it_is(path: Path) -> None:
    assert re.match(r"# \S+", path.read_text("utf-8"))


def test_a_data_set_brings_its_defaults_and_the_command_line_wins() -> None:
    digits = make_config(["data=digits"])
    own = ["backbone=alexnet_quarter", "training.iterations=7"]
    overridden = make_config(["data=digits", *own])
    assert (digits.backbone.width, digits.training.iterations) == (1.0, 5000)
    assert (overridden.backbone.width, overridden.training.iterations) == (0.25, 7)
    assert overridden.training.learning_rate == 0.01
