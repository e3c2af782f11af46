"""Domains and sets of them: what they give, and what they refuse."""

import numpy as np
import pytest

from robustmd.domains import Domain, DomainSet, Examples
from robustmd.errors import UserError


def examples(count=6, size=4, labels=None, **changes):
    images = np.arange(count * size * size * 3, dtype=np.uint8).reshape(count, size, size, 3)
    labels = np.arange(count, dtype=np.int64) % 3 if labels is None else labels
    return Examples(**{"images": images, "labels": labels, **changes})


def domain_set(*domains, classes=("a", "b", "c")):
    return DomainSet("tried", domains, classes, "0" * 64)


def test_rows_choose_and_subset_composes():
    whole = examples(6, labels=np.array([0, 1, 2, 0, 1, 2]))
    part = whole.subset([5, 4, 3]).subset([0, 2])
    assert part.rows.tolist() == [5, 3]
    assert part.targets.tolist() == [2, 0]
    assert len(part) == 2
    assert part.images is whole.images


@pytest.mark.parametrize("positions", [[-1], [6], [0, 7]])
def test_subset_refuses_positions_outside(positions):
    with pytest.raises(IndexError, match=r"0\.\.5"):
        examples(6).subset(positions)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"images": np.zeros((6, 4, 4, 3), np.float32)}, "float32"),
        ({"images": np.zeros((6, 4, 4), np.uint8)}, "[6, 4, 4]"),
        ({"images": np.zeros((6, 4, 4, 1), np.uint8)}, "[6, 4, 4, 1]"),
        ({"images": np.zeros((6, 3, 4, 4), np.uint8).transpose(0, 2, 3, 1)}, "C-contiguous"),
        ({"labels": np.zeros(5, np.int64)}, "int64 [5]"),
        ({"labels": np.zeros(6, np.int32)}, "int32 [6]"),
        ({"rows": np.array([0, 6])}, "from 0 to 6"),
        ({"rows": np.array([-1, 2])}, "from -1"),
        ({"rows": np.array([0.0])}, "float64"),
        ({"rows": np.array([], np.int64)}, "no examples"),
    ],
)
def test_domain_names_itself_the_split_and_the_fault(changes, words, one_line):
    with pytest.raises(UserError) as error:
        Domain("svhn", train=examples(), test=examples(**changes))
    one_line(error, "domain svhn, test split", words)


def test_set_is_a_sequence_of_domains():
    a, b = (Domain(name, examples(), examples()) for name in "ab")
    data = domain_set(a, b)
    assert list(data) == [a, b]
    assert len(data) == data.num_domains == 2
    assert data.names == ("a", "b")
    assert data[1] is data["b"] is b
    assert data.image_size == (4, 4)


def test_unknown_domain_lists_the_known(one_line):
    data = domain_set(*(Domain(name, examples(), examples()) for name in "ab"))
    with pytest.raises(UserError) as error:
        data["c"]
    one_line(error, "'c'", "a, b")


@pytest.mark.parametrize("label", [-1, 3])
def test_label_out_of_range(label, one_line):
    bad = examples(labels=np.array([0, 1, 2, 0, 1, label]))
    with pytest.raises(UserError) as error:
        domain_set(Domain("svhn", train=examples(), test=bad))
    one_line(error, "svhn, test split", str(label), "0 to 2")


def test_sets_that_do_not_agree_are_refused(one_line):
    with pytest.raises(UserError) as error:
        domain_set()
    one_line(error, "no domain")
    with pytest.raises(UserError) as error:
        domain_set(Domain("a", examples(), examples()), Domain("a", examples(), examples()))
    one_line(error, "one name")
    small = Domain("b", examples(size=3), examples(size=3))
    with pytest.raises(UserError) as error:
        domain_set(Domain("a", examples(), examples()), small)
    one_line(error, "a 4×4", "b 3×3")
