"""Domains from a user's own tensors."""

import numpy as np
import pytest
import torch

from robustmd.domains import DomainSet
from robustmd.errors import UserError

NHWC = np.random.default_rng(0).integers(0, 256, (5, 6, 7, 3), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 1, 0])


def images_of(x):
    data = DomainSet.from_tensors({"a": (x, LABELS, x, LABELS)})
    return data["a"].train.images


@pytest.mark.parametrize(
    "x",
    [
        NHWC,
        np.moveaxis(NHWC, 3, 1),
        torch.from_numpy(NHWC),
        torch.from_numpy(NHWC).permute(0, 3, 1, 2),
        torch.from_numpy(NHWC).permute(0, 3, 1, 2).float().div(255).requires_grad_(),
        NHWC / 255,
    ],
    ids=["last", "first", "tensor last", "tensor first", "float tensor", "float64"],
)
def test_every_form_gives_the_same_pixels(x):
    images = images_of(x)
    assert images.dtype == np.uint8
    assert np.array_equal(images, NHWC)


@pytest.mark.parametrize("form", [lambda g: g, lambda g: g[..., None], lambda g: g[:, None]])
def test_gray_is_repeated(form):
    gray = NHWC[..., 0]
    assert np.array_equal(images_of(form(gray)), np.repeat(gray[..., None], 3, axis=3))


def test_classes_are_counted_over_all_splits_and_domains():
    x, few, many = NHWC[:2], [0, 1], [4, 0]
    for given in ((few, many), (many, few)):
        data = DomainSet.from_tensors({"a": (x, np.array(given[0]), x, np.array(given[1]))})
        assert data.classes == ("0", "1", "2", "3", "4")


def test_given_classes_bound_the_labels(one_line):
    data = {"a": (NHWC, LABELS, NHWC, LABELS)}
    assert DomainSet.from_tensors(data, classes=["x", "y", "z"]).classes == ("x", "y", "z")
    with pytest.raises(UserError) as error:
        DomainSet.from_tensors(data, classes=["x", "y"])
    one_line(error, "domain a", "0 to 2", "0 to 1")


def test_fingerprint_names_every_value():
    def fingerprint(x=NHWC, y=LABELS, name="a", data="tensors"):
        return DomainSet.from_tensors({name: (x, y, NHWC, LABELS)}, name=data).fingerprint

    changed = NHWC.copy()
    changed[4, 5, 6, 2] ^= 1
    swapped = LABELS[::-1].copy()
    swapped[0] = 1
    fingerprints = {
        fingerprint(),
        fingerprint(x=changed),
        fingerprint(y=swapped),
        fingerprint(name="b"),
        fingerprint(data="other"),
    }
    assert len(fingerprints) == 5
    assert fingerprint() == fingerprint(x=np.moveaxis(NHWC, 3, 1))


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (NHWC.astype(np.int64), "int64"),
        (NHWC.astype(np.float32), "0..1"),
        (np.full((5, 6, 7, 3), np.nan), "nan"),
        (NHWC[..., :2], "[5, 6, 7, 2]"),
        (NHWC[0, 0], "[7, 3]"),
        (NHWC[:, :3], "channels first or last"),
        (NHWC[:4], "int64 [4]"),
    ],
)
def test_images_that_are_none(x, words, one_line):
    with pytest.raises(UserError) as error:
        images_of(x)
    one_line(error, "a", "train", words)


@pytest.mark.parametrize("y", [LABELS.astype(str), LABELS[:, None], np.eye(5, dtype=int)])
def test_labels_that_are_none(y, one_line):
    with pytest.raises(UserError) as error:
        DomainSet.from_tensors({"a": (NHWC, LABELS, NHWC, y)})
    one_line(error, "a, test", "integers [N]")


def test_wrong_number_of_arrays(one_line):
    with pytest.raises(UserError) as error:
        DomainSet.from_tensors({"a": (NHWC, LABELS)})
    one_line(error, "domain a", "2 arrays")


@pytest.mark.parametrize(("y", "names"), [(LABELS / 4, ["depth"]), (np.eye(5)[:, :2], ["a", "b"])])
def test_numbers_are_labels_too(y, names):
    data = DomainSet.from_tensors({"a": (NHWC, y, NHWC, torch.tensor(y))}, classes=names)
    assert data.are_numbers
    for examples in data["a"].splits.values():
        assert examples.targets.dtype == np.float32
        assert np.array_equal(examples.targets, y.reshape(5, -1).astype(np.float32))
    assert f"{len(names)} numbers" in repr(data)
    other = DomainSet.from_tensors({"a": (NHWC, y + 1, NHWC, y)}, classes=names)
    assert other.fingerprint != data.fingerprint


@pytest.mark.parametrize(
    ("labels", "names", "words"),
    [
        (np.full((5, 2), np.nan), None, "not all finite"),
        (np.eye(5)[:, :2], ["a"], "2 numbers an image, of which `classes` names 1"),
        (LABELS, ["a", "b"], "its labels are numbers and others' are classes"),
    ],
)
def test_numbers_that_are_none(labels, names, words, one_line):
    with pytest.raises(UserError) as error:
        DomainSet.from_tensors(
            {"b": (NHWC, np.eye(5)[:, :2], NHWC, np.eye(5)[:, :2]), "a": (NHWC, labels) * 2},
            classes=names,
        )
    one_line(error, words)
