"""The points of the static front, and the key that asks for one."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustmd.config import settings, validation
from robustmd.config.ranges import DISTRIBUTION
from robustmd.errors import UserError
from robustmd.methods.even import Even, front_point
from robustmd.registry import BACKBONES, DATA

NAMES = ["a", "b", "c"]


def config_of(method, data=None):
    sections = {name: schema() for name, schema in settings.SECTIONS.items()}
    data = data or DATA["digits_mini"]()
    return settings.Config(data=data, backbone=BACKBONES["alexnet"](), method=method, **sections)


def test_two_domains_have_a_grid():
    assert [front_point(i, 2) for i in (0, 3, 10)] == [[0.0, 1.0], [0.3, 0.7], [1.0, 0.0]]


@given(st.integers(0, 200), st.integers(3, 20))
def test_every_point_is_a_distribution(point, num_domains):
    weights = front_point(point, num_domains)
    assert len(weights) == num_domains
    assert DISTRIBUTION.holds(weights)
    assert weights == front_point(point, num_domains)


def test_more_domains_begin_with_the_corners_and_go_on_with_different_points():
    points = [tuple(front_point(i, 3)) for i in range(20)]
    assert points[:3] == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    assert len(set(points)) == 20


def test_drawn_points_lie_about_the_middle():
    """The mean of uniform draws from the simplex is 1/K, with std sqrt((K − 1)/(K²(K + 1)))/√n."""
    drawn = [front_point(i, 4) for i in range(4, 404)]
    for weights in zip(*drawn, strict=True):
        assert sum(weights) / len(weights) == pytest.approx(0.25, abs=4 * 0.194 / 20)


def test_a_point_becomes_the_prior():
    done = validation.settled(config_of(Even(point=3)), NAMES[:2]).config
    assert (done.method.prior, done.method.point) == ([0.3, 0.7], None)
    plain = validation.settled(config_of(Even(prior=[0.3, 0.7])), NAMES[:2]).config
    assert dataclasses.asdict(done) == dataclasses.asdict(plain)


def test_what_is_no_point_is_refused():
    with pytest.raises(UserError, match=r"method\.point=11: with two domains .* from 0 to 10"):
        validation.settled(config_of(Even(point=11)), NAMES[:2])
    with pytest.raises(UserError, match=r"method\.point=0: .* two domains or more"):
        validation.settled(config_of(Even(point=0)), NAMES[:1])
    with pytest.raises(UserError, match=r"method\.point=-1: must be a whole number >= 0"):
        validation.validate(config_of(Even(point=-1)))
    with pytest.raises(UserError, match=r"method\.point=1: method\.prior is given as well"):
        Even(point=1, prior=[0.5, 0.5]).check()
