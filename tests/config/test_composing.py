"""What is said of an error between what was typed and a config."""

import pytest
from omegaconf import OmegaConf

from robustmd.config.composing import composed_error


def test_an_error_without_words_is_told_by_its_kind_and_place() -> None:
    with pytest.raises(AssertionError) as caught:
        OmegaConf.create([]).extend(iter([]))
    said = composed_error(caught.value, ["seed=1"])
    assert said.startswith("seed=1: makes no config (AssertionError at ")
    assert "listconfig.py:" in said
    assert said.endswith(": assert isinstance(lst, (tuple, list, ListConfig)))")


def test_an_error_of_neither_hydra_nor_omegaconf_is_told_by_its_kind_and_place() -> None:
    with pytest.raises(KeyError) as caught:
        {}["database"]
    said = composed_error(caught.value, ["seed=1"])
    assert said.startswith("KeyError at ")
    assert said.endswith(": 'database'")
