"""One thread, and small problems for all tests of the studies."""

import pytest
import torch

from robustmd.studies.parallel import one_thread
from robustmd.studies.planted.domains import Sample, Setting, draw
from robustmd.studies.theory.problems import Logistic, TanhNetwork


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="session")
def logistic() -> Logistic:
    """3 domains of 12 examples, 2 features, 3 classes; mini-batches of 4."""
    return Logistic(3, 12, 3, batch_size=4, ridge=0.1, seed=1, disagreement=0.7, separation=1.0)


@pytest.fixture(scope="session")
def network() -> TanhNetwork:
    """The same domains, 3 hidden units."""
    return TanhNetwork(3, 12, 3, batch_size=4, ridge=0.05, seed=1, disagreement=0.7, separation=1.0)


@pytest.fixture
def models():
    """Random W [n, P] for a problem."""

    def draw(problem, n: int = 4) -> torch.Tensor:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(n, problem.num_parameters, generator=generator, dtype=torch.float64)

    return draw


@pytest.fixture(scope="session")
def setting() -> Setting:
    """3 domains of 20, 28 and 40 examples or so."""
    return Setting(num_domains=3, mean_size=30, size_ratio=2.0, first_flips=0.3)


@pytest.fixture(scope="session")
def sample(setting: Setting) -> Sample:
    """The setting's training set of seed 0."""
    return draw(setting, 0).train
