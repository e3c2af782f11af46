"""Which examples property tests draw: the same every time, or new ones where slow tests run."""

import hypothesis
import pytest
from conftest import asks_for_slow


@pytest.mark.parametrize("expression", ["slow", "slow and not gpu", "not gpu and (slow or x)"])
def test_a_run_of_slow_tests_seeks_new_examples(expression: str) -> None:
    assert asks_for_slow(expression)


@pytest.mark.parametrize("expression", ["", "not slow", "not(slow or gpu)", "gpu", "slower"])
def test_every_other_run_draws_the_same_examples(expression: str) -> None:
    assert not asks_for_slow(expression)


def test_this_run_draws_as_its_command_says(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--hypothesis-profile") is None:
        is_random = asks_for_slow(pytestconfig.option.markexpr)
        assert hypothesis.settings.default.derandomize is not is_random
