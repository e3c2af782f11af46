"""The same image twice is found wherever it is, counted right, and looked for once."""

import json

import numpy as np
import pytest

from robustmd.domains.domain import Domain, DomainSet, Examples
from robustmd.domains.duplicates import (
    Place,
    Shared,
    duplicate_warnings,
    duplicates,
    find_duplicates,
)
from robustmd.domains.examples import Views


def examples(count: int, seed: int, side: int = 8) -> Examples:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, side, side, 3), dtype=np.uint8)
    return Examples(images, np.zeros(count, np.int64))


def data_set(side: int = 8) -> DomainSet:
    domains = [
        Domain(name, examples(20, 2 * i, side), examples(10, 2 * i + 1, side))
        for i, name in enumerate("ab")
    ]
    return DomainSet("toy", tuple(domains), ("x", "y"), "f" * 64)


def counts(data: DomainSet) -> dict[tuple[str, str], tuple[int, int]]:
    return {(str(s.first), str(s.second)): (s.images, s.examples) for s in find_duplicates(data)}


def test_different_images_are_no_duplicates():
    assert find_duplicates(data_set()) == ()
    assert duplicate_warnings(()) == []


@pytest.mark.parametrize("side", [4, 40])
def test_planted_duplicates_are_counted_by_pairs_of_splits(side):
    data = data_set(side)
    a, b = data
    a.test.images[[2, 3]] = a.train.images[5]  # one image, twice in test
    b.train.images[7] = a.train.images[5]
    b.test.images[1] = b.test.images[0]
    assert counts(data) == {
        ("a train", "a test"): (1, 2),
        ("a train", "b train"): (1, 1),
        ("a test", "a test"): (1, 2),
        ("a test", "b train"): (1, 1),
        ("b test", "b test"): (1, 2),
    }


def test_one_image_under_two_labels_is_a_warning():
    data = data_set()
    a, b = data
    a.train.images[[1, 2]] = a.train.images[0]
    b.test.images[3] = a.train.images[0]
    assert not any("two labels" in line for line in duplicate_warnings(find_duplicates(data)))
    a.train.labels[2] = 1
    (line,) = [w for w in duplicate_warnings(find_duplicates(data)) if "two labels" in w]
    assert line.endswith("1 in a train, 1 in a train and b test")


def test_only_the_rows_of_a_split_count():
    whole = examples(10, 0)
    whole.images[9] = whole.images[0]
    rows = np.arange(5, dtype=np.int64)
    train, test = (Examples(whole.images, whole.labels, r) for r in (rows, rows[:4] + 5))
    data = DomainSet("toy", (Domain("a", train, test),), ("x",), "f" * 64)
    assert find_duplicates(data) == ()
    leak = Examples(whole.images, whole.labels, rows + 5)
    data = DomainSet("toy", (Domain("a", train, leak),), ("x",), "f" * 64)
    assert counts(data) == {("a train", "a test"): (1, 1)}


def test_noisy_copies_of_a_domain_share_images_on_purpose():
    train, test = examples(10, 0), examples(5, 1)
    test.images[0] = train.images[0]
    copies = tuple(
        Domain(
            f"noise{sigma:g}",
            Examples(train.images, train.labels, views=Views(sigma=sigma)),
            Examples(test.images, test.labels, views=Views(sigma=sigma)),
        )
        for sigma in (0.0, 10.0)
    )
    data = DomainSet("toy", copies, ("x",), "f" * 64)
    assert counts(data) == {("noise0 train", "noise0 test"): (1, 1)}


def test_the_warnings_name_leaks_and_shared_images_but_no_repeats():
    train, test, other = Place("a", "train"), Place("a", "test"), Place("b", "train")
    found = (Shared(train, train, 4, 9), Shared(train, test, 2, 3), Shared(train, other, 5, 6))
    assert duplicate_warnings(found) == [
        "the same image in two splits of a domain: 3 of a test are in train",
        "the same image in two domains: 5 in a train and b train",
    ]


def test_the_answer_is_kept_by_data_and_splits(tmp_path):
    data = data_set()
    data["a"].test.images[0] = data["a"].train.images[0]
    assert duplicates(data, tmp_path, most=0) is None
    found = duplicates(data, tmp_path)
    assert found
    assert duplicates(data, tmp_path, most=0) == found
    assert duplicates(data.with_validation(0.2, seed=1), tmp_path, most=29) is None
    data["a"].test.images[0] ^= 1  # unseen by the cache, which goes by the fingerprint
    assert duplicates(data, tmp_path) == found


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"shared": [[1]]}', '{"shared": [[["a", "train"], ["z", "test"], 1, 1, 0]]}'],
)
def test_a_damaged_answer_is_looked_for_again(tmp_path, text):
    data = data_set()
    assert duplicates(data, tmp_path) == ()
    (kept,) = tmp_path.iterdir()
    kept.write_text(text)
    assert duplicates(data, tmp_path, most=0) is None
    assert duplicates(data, tmp_path) == ()
    assert json.loads(kept.read_text())["shared"] == []


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path):
    (tmp_path / "file").write_text("")
    assert duplicates(data_set(), tmp_path / "file") == ()
