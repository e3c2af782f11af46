"""The door: what registers, and what is refused in one line."""

import dataclasses
import datetime
import sys

import pytest

import robustmd
import robustmd.config.settings  # registers what is built in
from robustmd import Settings, cli
from robustmd.adversary import Adversary
from robustmd.config.plugins import imports_of, imports_of_experiments, in_config_dir, whose
from robustmd.config.ranges import POSITIVE
from robustmd.errors import UserError
from robustmd.facts import MethodFacts
from robustmd.methods import build_adversary
from robustmd.registry import METHODS, Method, Registry
from robustmd.sweep.draws import drawn_rows

OWN = """
import robustmd
from robustmd.config.ranges import POSITIVE, log


@robustmd.method("tilt")
class Tilt(robustmd.Settings):
    first: float = robustmd.key(1.0, POSITIVE, tune=log(0.1, 10))

    def build(self, facts):
        raise NotImplementedError
"""


@pytest.fixture
def registry():
    return Registry("method", Method, "build", learns=True)


@pytest.fixture
def methods(monkeypatch):
    """Methods that the test registers, or takes out, are so until it ends."""
    for table in ("_options", "_flags"):
        monkeypatch.setattr(METHODS, table, dict(getattr(METHODS, table)))
    yield METHODS
    sys.modules.pop("own_tilt", None)


class Builds(robustmd.Settings):
    size: float = robustmd.key(2.0, POSITIVE)
    names: list[str] = robustmd.key(["a"])

    def build(self, facts):
        return self.size


def test_a_class_becomes_an_option_with_typed_keys(registry):
    registry.register("mine", learns=False)(type("Mine", (Builds,), {}))
    assert registry["mine"]().name == "mine"
    assert not registry.flag("mine", "learns")
    assert registry.flag("theirs", "learns")


class Dated(Builds):
    day: datetime.date | None = None


@pytest.mark.parametrize(
    ("name", "schema", "words"),
    [
        ("no name", Builds, "letters, digits and underscores"),
        ("there", Builds, "has that name"),
        ("mine", dict, "must derive from robustmd.Settings"),
        ("mine", dataclasses.make_dataclass("Data", []), "must derive from robustmd.Settings"),
        ("mine", robustmd.Settings, "lacks the method build"),
        ("mine", Dated, "the key day must be a number, a truth value, text"),
    ],
)
def test_what_cannot_be_an_option_is_refused_in_a_line(registry, name, schema, words):
    registry.register("there")(type("There", (Builds,), {}))
    with pytest.raises(UserError, match=words) as error:
        registry.register(name)(schema)
    assert "\n" not in str(error.value)
    assert "@robustmd.method(" in str(error.value)


def test_every_method_names_its_place_once():
    looks = [METHODS.flag(name, "look") for name in METHODS if name != "individual"]
    assert len(looks) == len(set(looks))
    orders = [METHODS.flag(name, "order") for name in METHODS]
    assert None not in orders
    assert len(orders) == len(set(orders))


@pytest.mark.parametrize("named", ["imports", "entry point"])
def test_an_own_method_is_drawn_in_the_fair_protocol(methods, tmp_path, monkeypatch, capsys, named):
    (tmp_path / "own_tilt.py").write_text(OWN)
    command = ["train", "experiment=fair", "method=tilt", "seed=0", "--list"]
    if named == "imports":
        command.append("imports=[own_tilt]")
    else:  # as an installed package has it
        (tmp_path / "own-1.0.dist-info").mkdir()
        entry = tmp_path / "own-1.0.dist-info" / "entry_points.txt"
        entry.write_text("[robustmd.plugins]\nown = own_tilt\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.main(command) == 0
    runs = [x for x in capsys.readouterr().out.splitlines() if x.startswith("digits_typed/tilt/")]
    assert len(runs) == 11
    assert sum("method.first=" in run for run in runs) == 6


def test_an_adversary_whose_own_loss_no_run_would_minimise_is_refused(methods):
    class Penalty(Adversary):
        def weighted_loss(self, losses, *_, **__):
            return losses.mean() + losses.var()

    class Own(Settings):
        def build(self, facts):
            return Penalty(facts.num_domains)

    settings = METHODS.register("penalty", learns=True)(Own)()
    with pytest.raises(UserError, match=r"method=penalty: Penalty overrides weighted_loss, which"):
        build_adversary(settings, MethodFacts(2, 10))


def test_no_list_names_a_method_that_is_taken_out(methods):
    def found():
        rows = drawn_rows({"configurations": 2, "seed": 0}, 2)
        return list(METHODS), rows

    names, rows = found()
    afl, flags = METHODS._options.pop("afl"), METHODS._flags.pop("afl")
    assert found() == (
        [name for name in names if name != "afl"],
        [row for row in rows if row["method"] != "afl"],
    )
    METHODS.register("afl", **flags)(type("Again", (afl,), {}))
    assert found() == (names, rows)


def test_imports_are_found_wherever_they_are_given(tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text("imports: [four]\n")
    typed = ["experiment=mine", "imports=[one,'two']", "+imports=three"]
    assert imports_of(typed) == ["one", "two", "three"]
    with in_config_dir(str(tmp_path)):
        assert imports_of_experiments(typed) == ["four"]
    assert imports_of_experiments(typed) == []


def test_an_error_in_own_code_is_not_called_ours(tmp_path, monkeypatch):
    (tmp_path / "their_code.py").write_text("def build():\n    return 1 // 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    import their_code

    monkeypatch.setattr("robustmd.registry.modules_registered", lambda: {"their_code"})
    with pytest.raises(ZeroDivisionError) as error:
        their_code.build()
    assert whose(error.value) == "it was raised in their_code, line 2"
    assert "a bug of ours" in whose(KeyError("x"))
