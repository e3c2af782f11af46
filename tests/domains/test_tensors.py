"""Domains from a user's own tensors."""

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import refused

from robustmd.domains import DomainSet
from robustmd.training.data import normalised

NHWC = np.random.default_rng(0).integers(0, 256, (5, 6, 7, 3), dtype=np.uint8)
SEQUENCES = np.random.default_rng(0).normal(size=(5, 4, 2))
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


def test_classes_are_counted_over_all_splits_and_named_in_the_fingerprint():
    x, few, many = NHWC[:2], np.array([0, 1]), np.array([4, 0])
    one = DomainSet.from_tensors({"a": (x, few, x, many)})
    other = DomainSet.from_tensors({"a": (x, many, x, few)})
    assert one.classes == other.classes == ("0", "1", "2", "3", "4")
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("x", "features", "dtype", "words"),
    [
        (SEQUENCES[:, 0], False, np.float32, "features [2]"),
        (SEQUENCES, True, np.float32, "features [4, 2]"),
        (LABELS[:, None] + np.arange(4), False, np.int64, "tokens [4]"),
        (torch.arange(40).view(5, 4, 2), True, np.int64, "tokens [4, 2]"),
    ],
)
def test_features_and_tokens_are_given_as_they_are(x, features, dtype, words):
    data = DomainSet.from_tensors({"a": (x, LABELS, x, LABELS)}, features=features)
    images = data["a"].train.images
    assert images.dtype == dtype
    assert np.array_equal(normalised(torch.from_numpy(images)), np.asarray(x).astype(dtype))
    assert data.image_size == (1, *np.shape(x)[1:])
    assert repr(data).splitlines()[0].endswith(f"1 domains, 3 classes, {words}")


class Pairs(torch.utils.data.Dataset):
    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(())


@pytest.mark.parametrize(
    "form",
    [Image.fromarray, lambda image: torch.from_numpy(image).permute(2, 0, 1) / 255],
    ids=["PIL", "tensor"],
)
def test_datasets_are_the_arrays_that_they_hold(form):
    split = Pairs(*((form(image), int(label)) for image, label in zip(NHWC, LABELS, strict=True)))
    examples = DomainSet.from_tensors({"a": (split, split)})["a"].test
    assert np.array_equal(examples.targets, LABELS)
    assert np.array_equal(examples.images, NHWC)


def test_labels_of_datasets_may_be_numbers():
    split = torch.utils.data.TensorDataset(torch.zeros(4, 3), torch.rand(4, 2))
    data = DomainSet.from_tensors({"a": (split, split)})
    assert data.are_numbers
    assert np.array_equal(data["a"].train.targets, split.tensors[1])


@pytest.mark.parametrize(
    "dataset",
    [
        Stream(),
        Pairs(),
        Pairs((1, 2, 3)),
        Pairs(NHWC),
        Pairs((NHWC[0], 0), (NHWC[0, 1:], 0)),
    ],
)
def test_datasets_that_are_none(dataset):
    with refused(f"domain a: {type(dataset).__name__} gives no pairs (x, y)"):
        DomainSet.from_tensors({"a": (Pairs((NHWC[0], 0)), dataset)})


@pytest.mark.parametrize(("y", "names"), [(LABELS / 4, ["depth"]), (np.eye(5)[:, :2], ["a", "b"])])
def test_numbers_are_labels_too(y, names):
    data = DomainSet.from_tensors({"a": (NHWC, y, NHWC, torch.tensor(y))}, classes=names)
    assert data.are_numbers
    for examples in data["a"].splits.values():
        assert examples.targets.dtype == np.float32
        assert np.array_equal(examples.targets, y.reshape(5, -1).astype(np.float32))
    assert f"{len(names)} numbers" in repr(data)


FEATURES, TWO = {"features": True}, np.eye(5)[:, :2]


@pytest.mark.parametrize(
    ("x", "y", "how", "words"),
    [
        (NHWC.astype(np.int64), LABELS, {}, "int64"),
        (NHWC.astype(np.float32), LABELS, {}, "0..1"),
        (np.full((5, 6, 7, 3), np.nan), LABELS, {}, "nan"),
        (NHWC[..., :2], LABELS, {}, "[5, 6, 7, 2]"),
        (NHWC[:, :3], LABELS, {}, "channels first or last"),
        (NHWC[:4], LABELS, {}, "4 images and 5 labels"),
        (SEQUENCES * np.nan, LABELS, FEATURES, "from nan to nan"),
        (LABELS[:, None] - 1, LABELS, FEATURES, "from -1 to 1"),
        (NHWC, LABELS.astype(str), {}, "integers [N]"),
        (NHWC, LABELS[:, None, None], {}, "integers [N]"),
        (NHWC, LABELS, {"classes": ["x", "y"]}, "0 to 2, but 2 classes allow 0 to 1"),
        (NHWC, LABELS - 1, {}, "from -1 to 1"),
        (NHWC, TWO * np.nan, {}, "not all finite"),
        (NHWC, TWO, {"classes": ["a"]}, "2 numbers an image, of which `classes` names 1"),
    ],
)
def test_what_is_neither_input_nor_label_is_refused(x, y, how, words):
    with refused("domain a, train", words):
        DomainSet.from_tensors({"a": (x, y) * 2}, **how)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": (NHWC, LABELS)}, "domain a: 2 arrays"),
        ({"b": (NHWC, TWO) * 2, "a": (NHWC, LABELS) * 2}, "numbers and others' are classes"),
        (
            {"a": (LABELS[:, None], LABELS % 2) * 2, "b": (SEQUENCES[:, 0, :1], LABELS) * 2},
            "domain b, train split: its images are float32 [1], those of a int64 [1]",
        ),
    ],
)
def test_domains_that_do_not_go_together_are_refused(given, words):
    with refused(words):
        DomainSet.from_tensors(given, classes=["p", "q"])
