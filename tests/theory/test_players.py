"""The lanes' updates are the package's, step by step."""

import pytest
import torch

from robustmd.adversary import (
    L2,
    BestResponse,
    EntropicOT,
    MirrorAscent,
    MultiplicativeWeights,
    ProjectedAscent,
    RegretMeter,
)
from robustmd.theory.players import players

K, STEPS = 4, 200
PRIOR = [0.4, 0.3, 0.2, 0.1]
LANES = {
    "opt": lambda T: ProjectedAscent(K, L2(), 0.5, c="auto", mu=3.0, total_steps=T, prior=PRIOR),
    "opt, plain": lambda T: ProjectedAscent(K, L2(), 0.5, c=0.0),
    "kl": lambda T: MirrorAscent(K, 0.5, c="auto", mu=3.0, total_steps=T, prior=PRIOR),
    "kl, plain": lambda T: MirrorAscent(K, 0.5, c=0.0),
    "lemma 1": lambda T: MultiplicativeWeights(K, step="lemma1", total_steps=T, gamma=3.0),
    "theorem 1": lambda T: MultiplicativeWeights(K, step="theorem1", total_steps=T, gamma=3.0),
    "best response": lambda T: BestResponse(K, None, every=1),
    "best response, L2": lambda T: BestResponse(K, L2(), 0.5, every=1, prior=PRIOR),
}


@pytest.mark.parametrize("name", LANES)
def test_lanes_move_as_the_packages_adversaries(name):
    horizons = [1000, 300, 100]
    alone = [LANES[name](T) for T in horizons]
    together = players([LANES[name](T) for T in horizons])
    generator = torch.Generator().manual_seed(1)
    for step in range(STEPS):
        f = torch.rand(3, K, generator=generator, dtype=torch.float64) * 2
        if step % 20 == 0:
            f[:, :2] = 3.0  # a tie at the top
        if step == 100:
            together.keep(2)
            alone = alone[:2]
        f = f[: len(alone)]
        plays = [adversary.update(row) for adversary, row in zip(alone, f, strict=True)]
        joint = together.update(f)
        for lane, (adversary, play) in enumerate(zip(alone, plays, strict=True)):
            torch.testing.assert_close(together.p[lane], adversary.p, rtol=1e-12, atol=1e-14)
            torch.testing.assert_close(joint.payoff[lane], play.payoff, rtol=1e-12, atol=1e-14)
            if play.direction is not None:
                torch.testing.assert_close(
                    joint.direction[lane], play.direction, rtol=1e-12, atol=1e-12
                )


def test_what_has_no_lanes_is_refused():
    with pytest.raises(ValueError, match="no lanes"):
        players([ProjectedAscent(K, EntropicOT(), 1.0, c=0.0)])
    with pytest.raises(ValueError, match="constant"):
        players([MirrorAscent(K, 1.0, step="constant", eta=0.1)])
    with pytest.raises(ValueError, match="alike"):
        players([MirrorAscent(K, 1.0, c=0.0), MirrorAscent(K, 2.0, c=0.0)])


def test_a_tally_reads_as_the_packages_regret_meter(logistic):
    """A run of one lane, replayed with the package's adversary and meter alone."""
    from robustmd.theory.lanes import Runs, draw_batches

    T, step = 60, 0.1
    runs = Runs(logistic, lambda T: ProjectedAscent(3, L2(), 0.5, c=2.0), lambda T: step)
    outcome = runs.run([T, 25], [3, 4])[1][1]
    adversary = ProjectedAscent(3, L2(), 0.5, c=2.0)
    meter, W = RegretMeter.of(adversary), logistic.start(4)
    batches, squared, models = draw_batches(logistic, [4]), 0.0, []
    for _ in range(T):
        point = logistic.evaluate(W.unsqueeze(0), next(batches))
        g, batch_g = point.gradients(adversary.p.unsqueeze(0))
        squared += float(g.square().sum())
        models.append(W)
        meter.update(adversary.update(point.batch_losses[0]))
        W = W - step * batch_g[0]
    summary = meter.summary(adversary)
    assert outcome.T == T
    assert outcome.regret == pytest.approx(summary["measured"], rel=1e-9)
    assert outcome.regret_bound == pytest.approx(summary["bound"], rel=1e-12)
    assert outcome.mu == pytest.approx(summary["mu"], rel=1e-12)
    assert outcome.gradient == pytest.approx(squared / T, rel=1e-12)
    assert outcome.mean_model == pytest.approx(torch.stack(models).mean(0).numpy(), rel=1e-12)
