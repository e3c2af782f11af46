"""The study's convex and its smooth non-convex problem."""

from robustmd.theory.classifiers import Logistic, TanhNetwork
from robustmd.theory.domains import Domains, synthetic_domains


def convex_problem() -> Logistic:
    """3 domains of 40 examples, all in play at the saddle point; 6 weights."""
    return Logistic(_domains(3), batch_size=40, ridge=0.2)


def smooth_problem() -> TanhNetwork:
    """2 domains of 40 examples that disagree, 3 hidden units: 17 weights."""
    return TanhNetwork(_domains(2), batch_size=40, ridge=0.2, hidden=3)


def _domains(num_domains: int) -> Domains:
    """Classes that look different in every domain; see docs/theory.md for the choice."""
    return synthetic_domains(num_domains, num_examples=40, seed=6, disagreement=1.0, separation=1.5)
