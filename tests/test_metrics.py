"""The metrics, against values computed by hand and by plain loops."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from robustmd.registry import METRICS

# Four examples of three classes, of which the last never occurs; probabilities written out.
P = torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
LABELS = torch.tensor([0, 1, 1, 0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", -(math.log(0.7) + math.log(0.3) + math.log(0.5) + math.log(0.1)) / 4),
        ("accuracy", 50.0),
        ("macro_accuracy", 50.0),  # of class 0 one of two, of class 1 one of two
        ("macro_f1", (2 / 4 + 2 / 3 + 0.0) / 3),  # class 2 is predicted once, and never there
        # confidences 0.7 (right), 0.6 (wrong), 0.5 (right), 0.6 (wrong): two share a bin
        ("ece", (0.3 + 1.2 + 0.5) / 4),
        ("brier", ((0.09 + 0.05) + (0.36 + 0.5) + (0.04 + 0.34) + (0.81 + 0.45)) / 4),
    ],
)
def test_values_by_hand(name, value):
    assert float(METRICS[name].of(P.log(), LABELS)) == pytest.approx(value, abs=1e-6)


@given(st.integers(1, 40), st.integers(2, 6), st.integers(0, 10**6))
def test_ranges_and_the_order_of_examples(n, classes, seed):
    random = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, classes, generator=random)
    labels = torch.randint(classes, (n,), generator=random)
    order = torch.randperm(n, generator=random)
    highest = {"loss": math.inf, "accuracy": 100, "macro_accuracy": 100, "brier": 2}
    # A row's loss and probabilities, float32, are the same in any order; what is summed over the n
    # rows is not: n − 1 sums and a quotient on either side, in float32 for the loss, else float64.
    # The C probabilities themselves sum to 1 within (C + 2) roundings of float32, and brier has
    # their square.
    double, single = 2.0**-53, 2.0**-24
    for name in ("loss", "accuracy", "macro_accuracy", "macro_f1", "ece", "brier"):
        of = METRICS[name].of
        value = float(of(logits, labels))
        assert 0 <= value <= highest.get(name, 1) + (2 * classes + 5) * single
        size, unit = (value, single) if name == "loss" else (highest.get(name, 1), double)
        again = float(of(logits[order], labels[order]))
        assert again == pytest.approx(value, rel=0, abs=2 * n * unit * size)


def test_a_class_that_a_domain_does_not_have_counts_nowhere():
    masked = torch.cat([P.log(), torch.full((4, 1), -torch.inf)], 1)
    for name in ("loss", "macro_accuracy", "macro_f1", "ece", "brier"):
        assert float(METRICS[name].of(masked, LABELS)) == pytest.approx(
            float(METRICS[name].of(P.log(), LABELS)), abs=1e-6
        )
