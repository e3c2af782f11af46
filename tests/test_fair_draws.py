"""The fair protocol's rows are those that its ranges give, and the methods' pages say them."""

import importlib.util
import math
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from robustmd.registry import METHODS

ROOT = Path(__file__).parent.parent
CONF = ROOT / "conf"
RANGES = yaml.safe_load((CONF / "fair" / "ranges.yaml").read_text("utf-8"))
NOT_TUNED = {"individual", "retrain"}  # a reference, and a control that needs another method's run


def script():
    path = ROOT / "scripts" / "draw_fair.py"
    spec = importlib.util.spec_from_file_location("draw_fair", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DRAW = script()


def test_the_rows_are_what_the_script_draws():
    wanted = DRAW.files(RANGES)
    there = {f"row/fair/{path.name}" for path in (CONF / "row" / "fair").glob("*.yaml")}
    assert there | {"fair/rows.yaml"} == set(wanted)
    for name, text in wanted.items():
        assert (CONF / name).read_text("utf-8") == text, name


def test_every_method_has_as_many_configurations_as_any_other():
    found = DRAW.configurations(RANGES)
    methods = {name.rpartition("_")[0] if "individual" in name else name for name in found}
    assert methods == set(METHODS) - NOT_TUNED | {"individual"}
    assert {len(configurations) for configurations in found.values()} == {4}


def test_all_methods_have_the_same_learning_rates():
    """So that none is lucky with them, and f* of regret is of individual models like its own."""
    rates = {
        tuple(one["training.learning_rate"] for one in found)
        for found in DRAW.configurations(RANGES).values()
    }
    assert len(rates) == 1


def test_ranges_of_ones_own_make_a_preset(tmp_path):
    ranges = RANGES | {
        "configurations": 2,
        "methods": {"even": {}, "opt": RANGES["methods"]["opt"]},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(ranges), "utf-8")
    draw = [str(ROOT / "scripts" / "draw_fair.py"), "--ranges", "mine.yaml", "--conf", "c"]
    subprocess.run([sys.executable, *draw, "--name", "mine"], cwd=tmp_path, check=True)
    train = ["train", "--config-dir", "c", "experiment=mine", "row=mine/opt_1", "--cfg", "job"]
    done = subprocess.run(
        [sys.executable, "-m", "robustmd", *train],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    drawn = DRAW.configurations(ranges)["opt"][1]
    composed = yaml.safe_load(done.stdout)
    assert composed["method"]["lam"] == drawn["method.lam"]
    assert composed["training"]["learning_rate"] == drawn["training.learning_rate"]
    assert composed["data"]["validation"] == 0.2


@pytest.mark.parametrize("count", [1, 4, 9])
def test_draws_are_one_in_each_part_of_the_range(count):
    values = DRAW.draws("method.lam", {"log": [0.01, 10]}, count, 0)
    parts = {int(count * math.log(value / 0.0099) / math.log(10.2 / 0.0099)) for value in values}
    assert parts == set(range(count))
    assert all(0.01 <= value <= 10 for value in values)


def test_choices_come_equally_often():
    values = DRAW.draws("method.step", {"choice": ["lemma1", "theorem1"]}, 4, 0)
    assert sorted(values) == ["lemma1", "lemma1", "theorem1", "theorem1"]


def test_another_seed_draws_others():
    of = {"uniform": [0.5, 1]}
    assert DRAW.draws("method.alpha", of, 4, 0) == DRAW.draws("method.alpha", of, 4, 0)
    assert DRAW.draws("method.alpha", of, 4, 0) != DRAW.draws("method.alpha", of, 4, 1)


def test_an_unknown_kind_of_range_is_named():
    with pytest.raises(ValueError, match="normal: a range is one of log, uniform, choice"):
        DRAW.draws("method.lam", {"normal": [0, 1]}, 4, 0)


def words(key, of):
    """How a method's page says a range."""
    ((kind, ends),) = of.items()
    if kind == "choice":
        return f"`{key}` {' or '.join(map(str, ends))}"
    return f"`{key}` {ends[0]:g} to {ends[1]:g}, {'log-uniform' if kind == 'log' else 'uniform'}"


@pytest.mark.parametrize("method", RANGES["methods"])
def test_a_methods_page_says_its_ranges(method):
    page = (ROOT / "docs" / "methods" / f"{method}.md").read_text("utf-8")
    line = page.partition("Ranges in [the fair protocol](../fair.md): ")[2].partition("\n\n")[0]
    tuned = RANGES["methods"][method]
    said = " ".join(line.split())
    assert said, "no line with its ranges"
    for key, of in tuned.items():
        assert words(key, of) in said
    if not tuned:
        assert said.startswith("the learning rate alone")
