"""What a test split cannot tell is said: classes nobody trains on, tiny splits, one class."""

import numpy as np
import pytest

from robustmd.domains.class_notes import with_test_notes
from robustmd.domains.domain import Domain, DomainSet, Examples
from robustmd.errors import UserError

CLASSES = ("cat", "dog", "bird")


def examples(*counts: int) -> Examples:
    """So many images of class 0, 1, …"""
    labels = np.repeat(np.arange(len(counts)), counts)
    return Examples(np.zeros((len(labels), 8, 8, 3), np.uint8), labels.astype(np.int64))


def noted(data: DomainSet, *trained: str) -> list[str]:
    said: list[str] = []
    found = with_test_notes(data, trained or data.names, said.append)
    assert found.notes == (*data.notes, *said)
    return said


def data_of(**domains: tuple[Examples, Examples]) -> DomainSet:
    made = tuple(Domain(name, train, test) for name, (train, test) in domains.items())
    return DomainSet("folder", made, CLASSES, "f" * 64, notes=("before",))


def test_a_class_that_is_tested_and_not_trained_on_is_named() -> None:
    plain = (examples(5, 5), examples(5, 5))
    data = data_of(a=(examples(5, 5), examples(5, 5, 3)), b=plain)
    (line,) = noted(data)
    assert "without a training image" in line
    assert line.endswith("bird (3)")


def test_training_images_of_an_unseen_domain_are_none() -> None:
    data = data_of(a=(examples(5, 5), examples(5, 5)), b=(examples(5, 5, 5), examples(5, 5, 5)))
    assert noted(data) == []
    (line,) = noted(data, "a")
    assert line.endswith("bird (5)")


def test_a_tiny_test_split_is_named_with_its_images() -> None:
    data = data_of(a=(examples(5, 5), examples(5, 4)), b=(examples(5, 5), examples(5, 5)))
    (line,) = noted(data)
    assert line.startswith("fewer than 10 test images")
    assert line.endswith(": a 9")


@pytest.mark.parametrize("label", [0, 2])
def test_one_class_everywhere_is_refused(label: int, one_line) -> None:
    only = examples(*[0] * label, 8)
    data = data_of(a=(only, only), b=(only, only))
    with pytest.raises(UserError) as error:
        noted(data)
    one_line(error, "one class in all domains", CLASSES[label], "two are needed")
