"""What is planted is there: angles, sizes, scales, flipped labels; and what is shared is shared."""

import numpy as np
import pytest

from robustmd.studies.planted.domains import BASE, FACTORS, FEATURES, Setting, draw, settings_of


def test_the_rules_have_their_angles():
    rules = Setting(num_domains=4, angle=30.0, first_angle=150.0).rules(seed=3)
    assert np.linalg.norm(rules, axis=1) == pytest.approx(np.ones(4))
    assert np.rad2deg(np.arccos(rules[:, 0])) == pytest.approx([150, 30, 30, 30])


@pytest.mark.parametrize("ratio", [1.0, 3.0, 30.0])
def test_sizes_are_geometric_and_their_sum_is_fixed(ratio):
    sizes = Setting(size_ratio=ratio).sizes()
    assert abs(sizes.sum() - 2500) <= 2
    assert sizes[-1] / sizes[0] == pytest.approx(ratio, rel=0.05)
    assert np.all(np.diff(sizes) >= 0)


def test_the_first_domain_has_the_smallest_features():
    train = draw(Setting(scale_ratio=8.0), 0).train
    spread = np.sqrt(np.square(train.signed).mean(axis=(1, 2)))
    assert spread == pytest.approx(np.geomspace(1 / 8, 1, 5), rel=0.1)


def test_shares_are_means_over_what_is_there(setting, sample):
    sizes = setting.sizes()
    assert sample.signed.shape == (3, sizes.max(), FEATURES)
    assert (sample.shares > 0).sum(axis=1).tolist() == sizes.tolist()
    assert sample.shares.sum(axis=1) == pytest.approx(np.ones(3))
    assert np.all(sample.signed[sample.shares == 0] == 0)


def test_labels_are_flipped_as_often_as_said_and_clean_ones_never():
    setting = Setting(first_flips=0.4)
    splits, rules = draw(setting, 1), setting.rules(1)
    wrong = np.array([(splits.test.signed[k] @ rules[k] < 0).mean() for k in range(5)])
    assert wrong == pytest.approx([0.4, 0.05, 0.05, 0.05, 0.05], abs=0.05)
    assert all((splits.clean.signed[k] @ rules[k] > 0).all() for k in range(5))
    assert np.array_equal(np.abs(splits.clean.signed), np.abs(splits.test.signed))


def test_settings_of_a_seed_differ_in_the_factor_alone():
    base, noisy, many = (
        draw(setting, 5).train.signed
        for setting in (Setting(), Setting(first_flips=0.45), Setting(num_domains=10))
    )
    assert np.array_equal(base[1:], noisy[1:])
    assert np.array_equal(np.abs(base[0]), np.abs(noisy[0]))
    assert np.array_equal(base, many[:5])
    assert not np.array_equal(base, draw(Setting(), 6).train.signed)


def test_splits_are_different_draws():
    splits = draw(Setting(), 0)
    assert not np.isin(splits.train.signed, splits.validation.signed).any()
    assert not np.isin(splits.train.signed, splits.test.signed).any()


def test_the_factors_share_their_base():
    assert len(settings_of(FACTORS)) == sum(len(factor.levels) for factor in FACTORS) - 4
    assert all(BASE in [setting for _, setting in factor.levels] for factor in FACTORS)
