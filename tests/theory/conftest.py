"""One small problem of each kind, for all tests of the theory."""

import pytest
import torch

from robustmd.theory.classifiers import Logistic, TanhNetwork
from robustmd.theory.domains import synthetic_domains
from robustmd.theory.threads import one_thread


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="session")
def logistic() -> Logistic:
    """3 domains of 12 examples, 2 features, 3 classes; mini-batches of 4."""
    domains = synthetic_domains(3, num_examples=12, num_classes=3, seed=1)
    return Logistic(domains, batch_size=4, ridge=0.1)


@pytest.fixture(scope="session")
def network() -> TanhNetwork:
    """The same domains, 3 hidden units."""
    domains = synthetic_domains(3, num_examples=12, num_classes=3, seed=1)
    return TanhNetwork(domains, batch_size=4, ridge=0.05, hidden=3)


@pytest.fixture
def models():
    """Random W [n, P] for a problem."""

    def draw(problem, n: int = 4) -> torch.Tensor:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(n, problem.num_parameters, generator=generator, dtype=torch.float64)

    return draw
