"""Every preset composes, says what it is, and takes the usual overrides."""

import math
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import robustmd
from robustmd.config.check import make_config
from robustmd.config.compose import compose
from robustmd.config.ranges import log, uniform
from robustmd.errors import UserError
from robustmd.sweep import rows
from robustmd.sweep.draws import drawn_rows, draws, sobol

CONF = Path(robustmd.__file__).parent.parent / "conf" / "experiment"
PRESETS = sorted(path.stem for path in CONF.glob("*.yaml"))


def composed(name, *overrides):
    return compose([f"experiment={name}", *overrides])


@cache
def jobs(name, *overrides):
    """The config of every job of the preset's sweep."""
    return [make_config(job) for job in rows.jobs([f"experiment={name}", *overrides], False)]


def test_what_is_typed_chooses_among_the_rows_and_wins_over_params():
    chosen = list(jobs("demo", "method=opt,even", "seed=7,8"))
    assert [(one.method.name, one.seed) for one in chosen] == [
        ("even", 7),
        ("opt", 7),
        ("even", 8),
        ("opt", 8),
    ]
    (one,) = jobs("demo", "method=individual", "++method.domain=1", "seed=0")
    assert one.method.domain == 1
    with pytest.raises(UserError, match=r"method=kl: no row .* one of even, individual, opt$"):
        jobs("demo", "method=even,kl")
    with pytest.raises(UserError, match="interval takes a sweeper"):
        jobs("demo", "training.learning_rate=interval(0.1,1)")


def test_leave_one_out_keeps_each_domain_out_in_turn():
    three = ["data=digits_noise", "data.sigmas=[0,4,8]"]
    found = list(jobs("leave_one_out", "seed=0", *three))
    assert [(one.method.name, one.data.unseen) for one in found] == [
        (method, [name]) for name in ("sigma_0", "sigma_4", "sigma_8") for method in ("even", "opt")
    ]
    with pytest.raises(UserError, match="data=digits_mini has 2 domains"):
        list(jobs("leave_one_out", "seed=0", "data=digits_mini"))


def test_the_fair_protocol_draws_as_many_configurations_for_every_method():
    from robustmd.config.settings import METHODS

    found = jobs("mini_fair", "seed=3")
    counts = Counter(one.method.name for one in found)
    fair = {name: 4 for name in METHODS if METHODS.flag(name, "fair")}
    assert counts == {"individual": 8, **fair}
    rates = {name: [] for name in counts}
    for one in found:
        rates[one.method.name].append(one.training.learning_rate)
    assert len({tuple(sorted(set(of))) for of in rates.values()}) == 1
    pairs = {(o.training.learning_rate, o.method.lam) for o in found if o.method.name == "opt"}
    assert {(0.089, 0.47), (0.02, 0.084), (0.042, 0.015)} < pairs  # as docs/fair.md reports them
    assert len(pairs) == 4


def test_the_second_edition_tunes_the_rate_alone_and_all_keys_at_once():
    """Eleven configurations of each method: its defaults, four rates, six draws of its own."""
    found = drawn_rows(composed("fair")["sweep"]["tune"], 2)
    of = {}
    for row in found:
        if row["method"] != "individual":
            keys = {key: value for key, value in row.items() if key != "method"}
            of.setdefault(row["method"], []).append(keys)
    assert {len(found) for found in of.values()} == {11}
    assert all(found[0] == {} for found in of.values())
    rates = [[row["training.learning_rate"] for row in found[1:]] for found in of.values()]
    assert len({tuple(one[:4]) for one in rates}) == 1
    assert len({tuple(one[4:]) for one in rates}) == len(rates)
    assert all(0.1 <= rate <= 3 for one in rates for rate in one)
    assert all("method.lam" in row for row in of["opt"][5:])
    assert all(list(row) == ["training.learning_rate"] for row in of["opt"][1:5])


@pytest.mark.parametrize("count", [1, 6, 8])
def test_sobol_draws_spread_over_every_key_at_once(count):
    ranges = {"training.learning_rate": log(0.01, 1), "method.alpha": uniform(0.5, 1)}
    points = sobol("cvar", ranges, count, 0)
    assert points == sobol("cvar", ranges, count, 0)
    assert points != sobol("opt", ranges, count, 0)
    assert len(points) == count
    if count == 8:  # a point in each eighth of either range
        assert {int(8 * (p["method.alpha"] - 0.4999) * 2) for p in points} == set(range(8))
        logs = [math.log10(p["training.learning_rate"] / 0.00999) / 2.001 for p in points]
        assert {int(8 * x) for x in logs} == set(range(8))


@pytest.mark.parametrize("count", [1, 4, 9])
def test_draws_are_one_in_each_part_of_the_range(count):
    values = draws("method.lam", log(0.01, 10), count, 0)
    parts = {int(count * math.log(value / 0.0099) / math.log(10.2 / 0.0099)) for value in values}
    assert parts == set(range(count))
    assert values == draws("method.lam", log(0.01, 10), count, 0)


@pytest.mark.parametrize("name", PRESETS)
def test_each_says_its_command_what_it_makes_and_how_long_it_takes(name):
    head = (CONF / f"{name}.yaml").read_text("utf-8").partition("defaults:")[0]
    assert re.search(rf"^# robustmd train experiment={name} +\S", head, re.MULTILINE)
    assert re.search(r"minutes|hours|not timed", head)


@pytest.mark.parametrize(
    "name", [name for name in PRESETS if name not in ("digits_fair", "fair")]
)  # mini_fair has their rows
def test_each_is_a_sweep_over_five_seeds_or_more_of_settings_in_range(name):
    assert composed(name)["sweep"]["params"]["seed"].startswith("0,1,2,3,4")
    three = ["data=digits_noise", "data.sigmas=[0,4,8]"] if name == "leave_one_out" else []
    found = list(jobs(name, "seed=3", *three))
    assert len(found) >= 2
    for config in found:
        assert config.data.names()  # so that --list names the runs without the data


@pytest.mark.parametrize("name", PRESETS)
def test_each_takes_another_data_set_and_shorter_training(name):
    whole = make_config([f"experiment={name}", "data=digits_mini", "training.iterations=200"])
    assert whole.data.name == "digits_mini"
    assert whole.backbone.width == 0.25
    assert whole.training.iterations == 200
    assert whole.training.learning_rate == 0.03


def test_many_domains_are_a_thousand():
    whole = make_config(["experiment=many_domains"])
    assert len(whole.data.angles) * len(whole.data.sigmas) == 1000
    assert whole.backbone.width == 0.25
    methods = [one.method for one in jobs("many_domains", "seed=0")]
    assert [one.name for one in methods] == ["even", "opt", "kl", "cvar", "groupdro"]
    assert (methods[1].lam, methods[3].alpha) == (300, 0.1)


def test_presets_hold_what_the_paper_has():
    for name, sigmas in ("noise_4_8_12", [0, 4, 8, 12]), ("noise_10_20_30", [0, 10, 20, 30]):
        assert composed(name)["data"]["sigmas"] == sigmas
    for name, method in ("lambda_l2", "opt"), ("lambda_ot", "ot"):
        found = {(config.method.name, config.method.lam) for config in jobs(name, "seed=0")}
        assert found == {(method, lam) for lam in (0.1, 1.0, 10.0)}
    assert composed("digits_table")["data"]["svhn"]["extra"] is True
    assert "svhn" not in composed("running_time")["data"]


def test_tables_of_digits_share_their_runs_with_the_sweep_of_lambda():
    """A finished run of one preset is found by the other."""
    from robustmd.config.identity import config_hash, number_changing

    def hashes(name):
        return {config_hash(number_changing(one.model_dump())) for one in jobs(name, "seed=0")}

    assert len(hashes("digits_table") & hashes("lambda_l2")) == 1


def test_a_study_of_methods_alone_takes_any_methods():
    chosen = jobs("leave_one_out", "data=typed_turned", "method=groupdro,vrex", "seed=0")
    assert {one.method.name for one in chosen} == {"groupdro", "vrex"}
    assert len({tuple(one.data.unseen) for one in chosen}) == 6
