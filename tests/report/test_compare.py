"""Two trees side by side: paired where seeds match, Welch otherwise, and what they ran on."""

import json

import pytest

from robustmd.errors import UserError
from robustmd.report.compare import compare_lines, compare_markdown, compare_trees, pairings_sheet
from robustmd.report.quantities import WORST_TEST_ACCURACY, WORST_TRAIN_LOSS
from robustmd.report.selection import Selection


@pytest.fixture
def other(tmp_path, outputs):
    root = tmp_path / "other"
    root.mkdir()
    return type(outputs)(root)


def values(a, b=99.0):
    return {"test": {"a": (0.5, a), "b": (0.5, b)}}


def found(outputs, other, quantity=WORST_TEST_ACCURACY):
    result = compare_trees(outputs.root, other.root, Selection("final"))
    return result, [one for one in result.pairings if one.quantity == quantity]


def test_common_seeds_are_paired(outputs, other):
    # B − A = 1, 2, 3: mean 2, half width 2.484 (t_{0.975, 2}); A's own spread is far larger
    for seed, worst in enumerate((50.0, 70.0, 90.0)):
        outputs.run(seed=seed, **values(worst))
        other.run(seed=seed, **values(worst + 1 + seed))
    outputs.run(seed=9, **values(10.0))  # which B lacks: in no mean
    _, (one,) = found(outputs, other)
    assert (one.a.mean, one.a.n, one.b.mean) == (70.0, 3, 72.0)
    assert (one.difference.mean, one.word) == (2.0, "within")
    assert one.spread == pytest.approx(2.4841377, abs=1e-6)
    other.run("even", 3, **values(93.0))
    outputs.run("even", 3, **values(91.0))
    _, (one,) = found(outputs, other)
    assert one.word == "EXCEEDS"  # 1, 2, 3, 2: half width 1.299


def test_without_common_seeds_it_is_welchs_interval(outputs, other):
    for seed, worst in enumerate((80.0, 82.0)):
        outputs.run(seed=seed, **values(worst))
        other.run(seed=seed + 10, **values(worst + 1))
    _, (one,) = found(outputs, other)
    # s² = 2/2 + 2/2, ν = 2: half width 4.302653 sqrt(2)
    assert one.word == "within"
    assert one.spread == pytest.approx(4.302653 * 2**0.5, abs=1e-5)


def test_the_same_numbers_are_the_same_up_to_rounding_and_one_seed_has_no_spread(outputs, other):
    outputs.run("even", **values(80.0))
    other.run("even", **values(80.0 + 1e-9))
    outputs.run("opt", **values(80.0))
    other.run("opt", **values(81.0))
    result, (even, opt) = found(outputs, other)
    assert (even.word, opt.word) == ("the same", "no spread: too few seeds")
    assert any("are the same in every common seed" in line for line in compare_lines(result))


def test_rows_are_matched_by_their_settings_and_the_rest_is_named(outputs, other):
    outputs.run("opt", settings={"lam": 0.1}, folder="1")
    outputs.run("opt", settings={"lam": 1.0}, folder="2")
    other.run("opt", settings={"lam": 1.0}, folder="9", fingerprint="e" * 64)
    other.run("even", fingerprint="e" * 64)
    result, (one,) = found(outputs, other)
    assert one.label == "opt λ=1"
    assert (result.only_a, result.only_b) == (("toy: opt λ=0.1",), ("toy: even",))


def test_other_versions_and_other_bytes_are_named(outputs, other):
    outputs.run()
    path = other.run(fingerprint="e" * 64) / "environment.json"
    recorded = json.loads(path.read_text("utf-8"))
    recorded |= {"device": "Some GPU", "threads": 4, "packages": {"torch": "2.4"}}
    path.write_text(json.dumps(recorded), "utf-8")
    result, _ = found(outputs, other)
    differences = {key: (a, b) for key, a, b in result.environment_differences}
    assert differences == {
        "device": ("cpu", "Some GPU"),
        "threads": ("not recorded", "4"),
        "torch": ("not recorded", "2.4"),
        "data fingerprint of toy": ("f" * 64, "e" * 64),
    }
    assert "| device | cpu | Some GPU |" in compare_markdown(result)


def test_the_files_hold_every_pairing_with_every_digit(outputs, other, csv_rows):
    for seed in range(3):
        outputs.run(seed=seed, train={"a": (0.1 + seed / 3, 80.0), "b": (0.05, 90.0)})
        other.run(seed=seed, train={"a": (0.2 + seed / 3, 80.0), "b": (0.05, 90.0)})
    result, (one,) = found(outputs, other, WORST_TRAIN_LOSS)
    rows = {row["quantity"]: row for row in csv_rows(pairings_sheet(result.pairings))}
    row = rows["worst_train_loss"]
    assert float(row["mean_a"]) == one.a.mean
    assert float(row["difference"]) == one.difference.mean
    assert (row["common_seeds"], row["paired"], row["verdict"]) == ("0 1 2", "yes", "EXCEEDS")
    assert len(rows) == 10
    page = compare_markdown(result)
    assert page.count("EXCEEDS |") == sum(r["verdict"] == "EXCEEDS" for r in rows.values())


def test_nothing_in_common_is_a_users_mistake(outputs, other):
    outputs.run("even")
    other.run("opt")
    with pytest.raises(UserError, match="no configuration has finished runs in both"):
        compare_trees(outputs.root, other.root, Selection("final"))
    with pytest.raises(UserError, match="no such folder"):
        compare_trees(outputs.root, other.root / "nowhere", Selection("final"))
