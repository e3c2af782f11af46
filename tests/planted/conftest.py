"""One thread, and small samples for all tests of the planted study."""

import pytest

from robustmd.planted.domains import Sample, Setting, draw
from robustmd.theory.threads import one_thread

SMALL = Setting(num_domains=3, mean_size=30, size_ratio=2.0, first_flips=0.3)


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="session")
def setting() -> Setting:
    """3 domains of 20, 28 and 40 examples or so."""
    return SMALL


@pytest.fixture(scope="session")
def sample(setting: Setting) -> Sample:
    """The setting's training set of seed 0."""
    return draw(setting, 0).train
