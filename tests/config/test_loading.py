"""What a test split cannot tell is said: classes nobody trains on, tiny splits, one class."""

import numpy as np
import pytest

from robustmd.config.loading import with_own_labels, with_test_notes
from robustmd.domains import DomainSet
from robustmd.errors import UserError

CLASSES = ("cat", "dog", "bird")
Counts = tuple[int, ...]  # images of class 0, 1, …


def data_of(**domains: tuple[Counts, Counts]) -> DomainSet:
    """Domains with so many training and test images of each class."""

    def arrays(counts: Counts) -> tuple[np.ndarray, np.ndarray]:
        labels = np.repeat(np.arange(len(counts)), counts)
        return np.zeros((len(labels), 8, 8, 3), np.uint8), labels

    splits = {
        name: [array for counts in pair for array in arrays(counts)]
        for name, pair in domains.items()
    }
    return DomainSet.from_tensors(splits, name="folder", classes=CLASSES)


def noted(data: DomainSet, *trained: str) -> list[str]:
    said: list[str] = []
    found = with_test_notes(data, trained or data.names, said.append)
    assert found.notes == (*data.notes, *said)
    return said


def test_a_class_that_is_tested_and_not_trained_on_is_named() -> None:
    data = data_of(a=((5, 5), (5, 5, 3)), b=((5, 5), (5, 5)))
    (line,) = noted(data)
    assert "without a training image" in line
    assert line.endswith("bird (3)")


def test_training_images_of_an_unseen_domain_are_none() -> None:
    data = data_of(a=((5, 5), (5, 5)), b=((5, 5, 5), (5, 5, 5)))
    assert noted(data) == []
    (line,) = noted(data, "a")
    assert line.endswith("bird (5)")


def test_a_tiny_test_split_is_named_with_its_images() -> None:
    data = data_of(a=((5, 5), (5, 4)), b=((5, 5), (5, 5)))
    (line,) = noted(data)
    assert line.startswith("fewer than 10 test images")
    assert line.endswith(": a 9")


@pytest.mark.parametrize("label", [0, 2])
def test_one_class_everywhere_is_refused(label: int, one_line) -> None:
    only = (*[0] * label, 8)
    with pytest.raises(UserError) as error:
        noted(data_of(a=(only, only), b=(only, only)))
    one_line(error, "one class in all domains", CLASSES[label], "two are needed")


def test_labels_of_its_own_teach_a_domain_of_one_class_nothing(one_line) -> None:
    two, cats, dogs = ((5, 5), (5, 5)), ((5,), (5,)), ((0, 5), (0, 5))
    said: list[str] = []
    with_own_labels(data_of(a=two, b=cats), said.append)
    assert said[1].endswith("without dog, bird: its loss is 0 whatever the model says")
    with pytest.raises(UserError) as error:
        with_own_labels(data_of(a=cats, b=dogs), said.append)
    one_line(error, "every domain has one class", "data.labels=shared")
