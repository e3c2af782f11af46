"""The door: what registers, and what is refused in one line."""

import dataclasses

import pytest

import robustmd
import robustmd.config.settings  # registers what is built in
from robustmd.config.plugins import (
    imports_of,
    imports_of_experiments,
    in_config_dir,
    whose,
    without_imports,
)
from robustmd.config.ranges import POSITIVE
from robustmd.errors import UserError
from robustmd.registry import METHODS, Registry


@pytest.fixture
def registry():
    return Registry("method", "build", learns=True)


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


def test_a_dataclass_keeps_its_fields(registry):
    @registry.register("mine")
    @dataclasses.dataclass
    class Mine(robustmd.Settings):
        size: float = robustmd.key(2.0, POSITIVE)
        names: list = dataclasses.field(default_factory=list)

        def build(self, facts):
            return self.size

    assert dataclasses.asdict(Mine()) == {"name": "mine", "size": 2.0, "names": []}
    (size,) = (item for item in dataclasses.fields(Mine) if item.name == "size")
    assert size.metadata["allowed"] is POSITIVE


@pytest.mark.parametrize(
    ("name", "schema", "words"),
    [
        ("no name", Builds, "letters, digits and underscores"),
        ("there", Builds, "has that name"),
        ("mine", dict, "must derive from robustmd.Settings"),
        ("mine", robustmd.Settings, "lacks the method build"),
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


def test_imports_are_found_wherever_they_are_given(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBUSTMD_IMPORTS", "zero")
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text("imports: [four]\n")
    typed = ["--config-dir", str(tmp_path), "experiment=mine", "imports=[one,'two']"]
    with in_config_dir([*typed, "+imports=three"]) as given:
        assert imports_of(given) == ["zero", "one", "two", "three"]
        assert imports_of_experiments(given) == ["four"]
        assert without_imports(given) == ["experiment=mine"]
    assert imports_of_experiments(given) == []


def test_an_error_in_own_code_is_not_called_ours(tmp_path, monkeypatch):
    (tmp_path / "their_code.py").write_text("def build():\n    return 1 // 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    import their_code

    monkeypatch.setattr("robustmd.registry.modules_registered", lambda: {"their_code"})
    with pytest.raises(ZeroDivisionError) as error:
        their_code.build()
    assert whose(error.value) == "it was raised in their_code, line 2"
    assert "a bug of ours" in whose(KeyError("x"))
