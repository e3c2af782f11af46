"""Theorem 4: not true as printed, true with the regularizer."""

import numpy as np
import pytest

from robustmd.theory.theorem4 import theorem4_as_printed, theorem4_regularised_parabolas

HORIZONS = [30, 300, 3000]


def means(experiment) -> np.ndarray:
    return np.array(
        [[run.gradient for run in row] for row in experiment.runs.run(HORIZONS, range(5))]
    )


def test_as_printed_it_stays_at_four():
    gradients = means(theorem4_as_printed())
    assert gradients.min() >= 4
    # η = 1/(σ√T); |w| ends below 2η, after at most 1/η steps at ≤ 16
    assert gradients[-1] == pytest.approx(4, abs=0.35)
    assert np.all(gradients[-1] - 4 < gradients[0] - 4)


def test_regularised_it_goes_to_zero():
    gradients = means(theorem4_regularised_parabolas())
    assert gradients.mean(axis=1)[-1] < 0.25
    slope = np.polyfit(np.log(HORIZONS[1:]), np.log(gradients.mean(axis=1)[1:]), 1)[0]
    assert slope < -0.5
