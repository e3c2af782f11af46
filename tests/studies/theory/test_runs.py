"""The runs: a replay of one, and Theorem 4, not true as printed and true with the regularizer."""

import numpy as np
import pytest
import torch

from robustmd.adversary import L2, ProjectedAscent, RegretMeter
from robustmd.studies.theory.experiments import theorem4, theorem4_as_printed
from robustmd.studies.theory.problems import Parabolas
from robustmd.studies.theory.runs import PARABOLAS, Runs, draw_batches, gradient

HORIZONS = [30, 300, 3000]


def means(experiment) -> np.ndarray:
    runs = experiment.runs.run(HORIZONS, range(5))
    return runs.pivot(index="T", columns="seed", values="gradient").to_numpy()


def test_as_printed_it_stays_at_four():
    gradients = means(theorem4_as_printed(Parabolas(), PARABOLAS))
    assert gradients.min() >= 4
    # η = 1/(σ√T); |w| ends below 2η, after at most 1/η steps at ≤ 16
    assert gradients[-1] == pytest.approx(4, abs=0.35)
    assert np.all(gradients[-1] - 4 < gradients[0] - 4)


def test_regularised_it_goes_to_zero():
    gradients = means(theorem4(Parabolas(), PARABOLAS))
    assert gradients.mean(axis=1)[-1] < 0.25
    slope = np.polyfit(np.log(HORIZONS[1:]), np.log(gradients.mean(axis=1)[1:]), 1)[0]
    assert slope < -0.5


def test_a_lane_is_the_run_of_its_seed_alone(logistic):
    """Replayed with the package's adversary and meter, one run at a time."""
    T, step = 60, 0.1
    runs = Runs(logistic, lambda T: ProjectedAscent(3, L2(), 0.5, c=2.0), lambda T: step)
    found = runs.run([T, 25], [3, 4])
    ((_, outcome),) = found[(found["T"] == T) & (found["seed"] == 4)].iterrows()
    adversary = ProjectedAscent(3, L2(), 0.5, c=2.0)
    meter, W = RegretMeter.of(adversary), logistic.start(4)
    batches, squared, models = draw_batches(logistic, [4]), 0.0, []
    for _ in range(T):
        lane = W.unsqueeze(0).requires_grad_()
        f, batch_f = logistic.evaluate(lane, next(batches))
        g, batch_g = (gradient(adversary.p.unsqueeze(0), one, lane) for one in (f, batch_f))
        squared += float(g.square().sum())
        models.append(W)
        meter.update(adversary.update(batch_f[0].detach()))
        W = W - step * batch_g[0]
    summary = meter.summary(adversary)
    assert outcome["regret"] == pytest.approx(summary["measured"], rel=1e-9)
    assert outcome["regret_bound"] == pytest.approx(summary["bound"], rel=1e-12)
    assert outcome["mu"] == pytest.approx(summary["mu"], rel=1e-12)
    assert outcome["gradient"] == pytest.approx(squared / T, rel=1e-12)
    assert outcome["mean_model"] == pytest.approx(torch.stack(models).mean(0).numpy(), rel=1e-12)
