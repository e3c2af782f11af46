"""Every wrong setting is one line that names the key, the value and what is allowed."""

import os
from pathlib import Path

import pytest
from tiny import composed

from robustmd.config import settings
from robustmd.config.check import check, make_config
from robustmd.config.grammar import parsed
from robustmd.config.identity import identity_of, number_changing
from robustmd.config.resolve import resolve
from robustmd.config.settings import defaults_of
from robustmd.errors import UserError
from robustmd.registry import METHODS

OF_FOLDER = ("data.size", "data.test_share", "data.unseen")
OF_METHOD = {"method.t": "term", "method.alpha": "cvar", "method.reference": "regret"}
DOMAINS = ("handwritten", "printed")


@pytest.mark.parametrize(
    ("override", "allowed"),
    [
        ("method.lam=0", "a number > 0"),
        ("method.lam=nan", "a number > 0"),
        ("method.lam=abc", "a number > 0"),
        ("method.c=-1", "auto, centred or a number >= 0"),
        ("method.step=exact", "one of theory, constant"),
        ("training.iterations=1.5", "a whole number >= 1"),
        ("training.momentum=1", "a number in [0, 1)"),
        ("training.weight_decay=-0.5", "a number >= 0"),
        ("training.schedule=poly", "one of constant, cosine, linear, step"),
        ("data.validation=1", "a number in [0, 1)"),
        ("runtime.device=gpu", "auto, cpu, cuda, cuda:N or mps"),
        ("runtime.threads=0", "a whole number >= 1"),
        ("method.prior=[0.3,0.3]", "a distribution over the domains"),
        ("method.prior=[a,b]", "a distribution over the domains"),
        ("seed=-1", "a whole number from 0"),
        ("force=maybe", "true or false"),
        ("data.test_share=1", "a number in (0, 1)"),
        ("data.unseen=7", "a list of domains' names"),
        ("method.t=nan", "a number"),
        ("method.alpha=1.5", "a number in (0, 1]"),
        ("method.reference=[a,0]", "null or a list of numbers"),
    ],
)
def test_a_value_out_of_range_names_key_value_and_what_is_allowed(
    override: str, allowed: str
) -> None:
    own = ["data=folder"] if override.partition("=")[0] in OF_FOLDER else []
    own += [f"method={OF_METHOD[key]}" for key in (override.partition("=")[0],) if key in OF_METHOD]
    with pytest.raises(UserError) as error:
        composed(*own, override)
    key, _, value = override.partition("=")
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(key)
    assert allowed in message
    assert value.strip("[]").split(",")[0] in message


def test_an_unknown_option_is_refused() -> None:
    config = {"method": {"name": "best"}, "data": {"name": "digits_mini"}}
    with pytest.raises(UserError, match="no such option; allowed: digits_mini"):
        check({"data": {"name": "digit"}})
    with pytest.raises(UserError, match="method=best: no such option; allowed: individual"):
        check(config | {"backbone": {"name": "alexnet"}})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["training.domains_per_batch=3"],
            "at most the number of domains, 2, and .*batch_size=200",
        ),
        (["training.domains_per_batch=2", "training.batch_size=1"], "and training.batch_size=1;"),
        (["method.prior=[0.2,0.3,0.5]"], "has 3 entries; must have 2"),
        (["method=ot", "method.cost=[[0,1,1],[1,0,1],[1,1,0]]"], "has 3 entries; must have 2"),
        (["method=individual", "method.domain=svhn"], "one of handwritten, printed"),
        (["method=individual", "method.domain=2"], "index from 0 to 1"),
        (["method=individual", "method.domain=-1"], "index from 0 to 1"),
    ],
)
def test_what_depends_on_the_domains_is_checked_against_them(
    overrides: list[str], message: str
) -> None:
    config = composed(*overrides)
    with pytest.raises(UserError, match=message):
        resolve(config, DOMAINS)


@pytest.mark.parametrize(
    ("asked", "overrides", "count", "drawn", "recorded"),
    [
        ("null", [], 2, 2, None),
        ("1", [], 2, 1, 1),
        ("2", [], 2, 2, None),
        ("1", ["training.batch_size=1"], 2, 1, None),
        ("1", ["method=individual"], 2, 1, None),
        ("null", ["training.batch_size=20"], 1000, 20, None),
        ("5", ["training.batch_size=20"], 1, 1, None),
    ],
)
def test_as_many_domains_are_drawn_as_there_can_be_and_what_is_drawn_anyhow_makes_no_other_run(
    asked: str, overrides: list[str], count: int, drawn: int, recorded: int | None
) -> None:
    config = composed(f"training.domains_per_batch={asked}", *overrides)
    found = resolve(config, [str(k) for k in range(count)])
    assert found.domains_per_batch == drawn
    assert found.config.training.domains_per_batch == recorded


@pytest.mark.parametrize(
    "overrides",
    [
        ["method.c=0", "method.mu=1"],
        ["method.step=constant", "method.eta=0.1", "method.c=3"],
        ["method=minimax", "method.step=constant", "method.eta=0.1", "method.gamma=3"],
        ["method=best_response", "method.nu=3"],
        ["method=best_response", "method.regularizer=none", "method.prior=[0.4,0.6]"],
        ["method.step=constant"],
        ["method.eta=0.1"],
    ],
)
def test_keys_that_do_not_go_together_are_refused(overrides: list[str]) -> None:
    with pytest.raises(UserError, match=r"leave it out|needs its size"):
        composed(*overrides)


def test_index_and_name_of_a_domain_are_the_same_run() -> None:
    by_index = resolve(composed("method=individual", "method.domain=1"), DOMAINS).config
    by_name = resolve(composed("method=individual", "method.domain=printed"), DOMAINS).config
    assert number_changing(by_index.model_dump()) == number_changing(by_name.model_dump())


@pytest.mark.parametrize(
    ("typed_as", "meant"),
    [("0", "1"), ("1", "1"), ("2", "2"), ("3", "3"), ("'3'", "3"), ("'0'", "1")],
)
def test_a_name_is_a_name_and_an_index_only_where_none_fits(typed_as: str, meant: str) -> None:
    config = composed("method=individual", f"method.domain={typed_as}")
    assert resolve(config, ("1", "2", "3")).config.method.domain == meant


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("data.unseen=[1]", ["1"]),
        ("data.unseen=[1e5,b]", ["1e5", "b"]),
        ("data.unseen=[ 1.50 , 007]", ["007", "1.50"]),
        ("data.unseen=[true,NULL,1_000,inf]", ["1_000", "NULL", "inf", "true"]),
        ("data.unseen=['a, 1e5, b',\"2e3\"]", ["2e3", "a, 1e5, b"]),
    ],
)
def test_a_name_that_looks_like_a_number_is_what_was_typed(written: str, names: list[str]) -> None:
    config = make_config(["data=folder", written])
    assert config.data.unseen == names
    swept = parsed(["method.domain=1e5,2", "training.learning_rate=1e5,2"])
    assert [list(one.sweep_string_iterator()) for one in swept.values()] == [
        ["'1e5'", "2"],
        ["100000.0", "2"],
    ]


def test_a_name_in_any_spelling_is_the_same_run() -> None:
    nfc, nfd = "caf\u00e9", "cafe\u0301"
    domains = ("a", "b", nfc)

    def identity(*overrides: str) -> object:
        config = composed("data=folder", "data.root=mine", *overrides)
        return number_changing(resolve(config, domains).config.model_dump())

    assert identity(f'data.unseen=["{nfd}"]') == identity(f'data.unseen=["{nfc}"]')
    one = [identity("method=individual", f'method.domain="{name}"') for name in (nfd, nfc, 2)]
    assert one[0] == one[1] == one[2]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.unseen=[z]"], r"data.unseen=\[z\]: no domain z; must be of a, b, c"),
        (["data.unseen=[a,b]"], "leaves 1 of 3 domains"),
        (["method=individual", "data.unseen=[a]"], "method=individual trains on a"),
        (["data.unseen=[b]", "method.prior=[0.2,0.3,0.5]"], "must have 2, one for each of a, c"),
    ],
)
def test_unseen_domains_leave_enough_to_train_on(overrides: list[str], message: str) -> None:
    config = composed("data=folder", "data.root=mine", *overrides)
    with pytest.raises(UserError, match=message):
        resolve(config, ("a", "b", "c"))


def test_what_trains_is_all_but_the_unseen_or_the_one() -> None:
    def trained(*overrides: str) -> tuple[str, ...]:
        return resolve(composed("data=folder", *overrides), ("a", "b", "c")).trained

    assert trained() == ("a", "b", "c")
    assert trained("data.unseen=[b]") == ("a", "c")
    assert trained("data.unseen=[b]", "method=individual", "method.domain=2") == ("c",)


def test_a_folder_of_ones_own_is_the_same_run_from_anywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    config = composed("data=folder", "data.root=mine", "data.unseen=[b,a,b]")
    assert config.data.root == str(tmp_path / "mine")
    assert config.data.manifest is None
    absolute = composed("data=folder", f"data.root={tmp_path}/mine", "data.unseen=[a,b]")
    assert number_changing(config.model_dump()) == number_changing(absolute.model_dump())
    assert composed("data=folder", "data.root=").data.root is None


def test_what_changes_no_number_is_not_in_the_identity() -> None:
    plain = number_changing(composed().model_dump())
    same = composed(
        "seed=7",
        "runtime.threads=1",
        "logging.every=3",
        "checkpoint.every=9",
        "paths.outputs=elsewhere",
        "force=true",
        "resume=false",
    )
    assert number_changing(same.model_dump()) == plain
    assert plain["method"] == {"name": "opt"}  # a key that is added later orphans no old run
    assert "momentum" not in plain["training"]
    for override in ("method.lam=2", "training.momentum=0", "evaluation.every=7"):
        assert number_changing(composed(override).model_dump()) != plain


def test_recorded_defaults_never_change() -> None:
    """They are part of every old run's identity: add keys, but change none of these."""
    recorded = {
        name: {k: v for k, v in defaults_of(schema).items() if k != "name"}
        for name, schema in METHODS.items()
    }
    ascent = {"lam": 1.0, "c": "auto", "mu": None, "prior": None, "step": "theory", "eta": None}
    assert recorded["opt"] == recorded["kl"] == ascent
    assert recorded["ot"] == {**ascent, "nu": 1.0, "cost": None, "sweeps": 10}
    assert recorded["optimistic"] == ascent
    assert recorded["regret"] == {**ascent, "reference": None}
    assert recorded["erm"] == {}
    assert recorded["groupdro"] == {"eta": 0.01, "adjustment": 0.0}
    assert recorded["afl"] == {"eta": 0.01}
    assert recorded["term"] == {"t": 1.0, "prior": None}
    assert recorded["cvar"] == {"alpha": 0.5, "prior": None}
    assert recorded["topk"] == {"k": 1}
    assert recorded["vrex"] == {"beta": 1.0}
    assert recorded["uncertainty"] == {"eta": 0.01}
    assert recorded["dwa"] == {"temperature": 2.0, "every": 100}
    assert recorded["famo"] == {"eta": 0.025, "gamma": 0.001}
    assert recorded["retrain"] == {"run": None, "weights": None}
    assert defaults_of(settings.Training) == {
        "iterations": 5000,
        "batch_size": 200,
        "domains_per_batch": None,
        "optimizer": "sgd",
        "learning_rate": 0.01,
        "head_learning_rate": None,
        "momentum": 0.9,
        "betas": None,
        "weight_decay": 5e-4,
        "decay_all": True,
        "schedule": "constant",
        "loss": "cross_entropy",
        "label_smoothing": 0.0,
        "milestones": [],
        "gamma": 0.1,
        "warmup": 0,
        "clip_norm": None,
        "ema": None,
        "patience": None,
    }


def test_paths_are_whole_and_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBUSTMD_DATA", "~/mine")
    monkeypatch.setenv("ROBUSTMD_CACHE", "/prepared")
    paths = composed("paths.outputs=here").paths
    assert paths.data is not None
    assert paths.data.endswith("/mine")
    assert "~" not in paths.data
    assert paths.cache == "/prepared"
    assert paths.outputs.startswith("/")
    assert composed("paths.data=/given").paths.data == "/given"


@pytest.mark.parametrize(
    "key", ["paths.outputs", "paths.data", "paths.cache", "data.root", "data.manifest"]
)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("~nobody_of_this_name/x", "there is no home folder ~nobody_of_this_name; write the path"),
        (r"\${HOME}/o", r"nothing is filled in for \$\{HOME\}; write the path in full"),
        ("${HOME}/o", "Interpolation key 'HOME' not found; write the value itself"),
    ],
)
def test_a_path_that_leads_nowhere_is_one_line(key: str, given: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        composed("data=folder", f'{key}="{given}"')
    assert str(error.value).startswith(key)
    assert "\n" not in str(error.value)


def test_a_user_without_a_home_gives_the_folders_that_are_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("HOME", "XDG_CACHE_HOME", "ROBUSTMD_DATA", "ROBUSTMD_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # no such user: KeyError
    paths = composed("paths.cache=/prepared").paths
    assert str(paths.folder("cache")) == "/prepared"
    assert paths.data is None
    with pytest.raises(UserError, match=r"paths\.data: is needed, as paths\.data=FOLDER"):
        paths.folder("data")
    with pytest.raises(UserError, match=r"paths\.outputs=~/x: there is no home folder ~;"):
        composed("paths.outputs='~/x'")


def test_a_folder_whose_name_is_no_text_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stray = tmp_path / os.fsdecode(b"caf\xe9")
    stray.mkdir()
    monkeypatch.chdir(stray)
    with pytest.raises(UserError, match=r"paths\.outputs=.*: has bytes that are no UTF-8 text"):
        composed()
    assert composed(f"paths.outputs={tmp_path}/outputs").paths.outputs == f"{tmp_path}/outputs"
    with pytest.raises(UserError, match=r"data\.unseen=.*: has bytes that are no UTF-8 text"):
        make_config(["data=folder", 'data.unseen=["caf\udce9"]', f"paths.outputs={tmp_path}"])


def test_files_count_by_what_they_hold_and_not_by_where_they_lie() -> None:
    def identity(place: str, fingerprint: str | None, weights: str | None) -> object:
        own = ["data=folder", f"data.root={place}", "backbone=resnet18"]
        config = composed(*own, f"backbone.weights={place}.pt")
        read = {"data_fingerprint": fingerprint, "weights_sha256": weights}
        return identity_of(config.model_dump(), read)

    one = identity("/a", "f", "w")
    assert one == identity("/b", "f", "w")
    assert one not in (identity("/a", "g", "w"), identity("/a", "f", "v"))
    assert identity("/a", None, None) != identity("/b", None, None)
    plain = composed("data=digits").model_dump()
    assert identity_of(plain, {"data_fingerprint": "f"}) == number_changing(plain)
