"""Domains from a user's own tensors."""

import numpy as np
import pytest
import torch
from PIL import Image

from robustmd.domains import DomainSet
from robustmd.errors import UserError
from robustmd.training.pixels import normalised

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


SEQUENCES = np.random.default_rng(0).normal(size=(5, 4, 2))


@pytest.mark.parametrize(
    ("x", "features", "dtype", "words"),
    [
        (SEQUENCES[:, 0], False, np.float32, "features [2]"),
        (SEQUENCES, True, np.float32, "features [4, 2]"),
        (torch.from_numpy(SEQUENCES[..., None]).half(), True, np.float32, "features [4, 2, 1]"),
        (LABELS[:, None] + np.arange(4), False, np.int64, "tokens [4]"),
        (torch.arange(40).view(5, 4, 2), True, np.int64, "tokens [4, 2]"),
    ],
)
def test_features_and_tokens_are_given_as_they_are(x, features, dtype, words):
    data = DomainSet.from_tensors({"a": (x, LABELS, x, LABELS)}, features=features)
    images = data["a"].train.images
    assert images.dtype == dtype
    assert np.array_equal(normalised(torch.from_numpy(images)), np.asarray(x).astype(dtype))
    assert repr(data).splitlines()[0].endswith(f"1 domains, 3 classes, {words}")


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (SEQUENCES * np.nan, "from nan to nan"),
        (SEQUENCES[:, 0, 0], "given is float64 [5]"),
        (NHWC, "given is uint8"),
        (LABELS[:, None] - 1, "from -1 to 1"),
    ],
)
def test_features_that_are_none(x, words, one_line):
    with pytest.raises(UserError) as error:
        DomainSet.from_tensors({"a": (x, LABELS, x, LABELS)}, features=True)
    one_line(error, "domain a, train", words)


def test_domains_differ_in_what_their_features_are(one_line):
    tokens, features = LABELS[:, None], SEQUENCES[:, 0, :1]
    with pytest.raises(UserError) as error:
        DomainSet.from_tensors({n: (x, LABELS) * 2 for n, x in (("a", tokens), ("b", features))})
    one_line(error, "a tokens [1]", "b features [1]")


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
    ("of", "same"),
    [
        (Image.fromarray, NHWC),
        (lambda image: torch.from_numpy(image).permute(2, 0, 1) / 255, NHWC),
        (lambda image: Image.fromarray(image).convert("L").convert("P"), None),
    ],
    ids=["PIL", "tensor", "palette"],
)
def test_datasets_are_the_arrays_that_they_hold(of, same):
    split = Pairs(*((of(image), int(label)) for image, label in zip(NHWC, LABELS, strict=True)))
    examples = DomainSet.from_tensors({"a": (split, split)})["a"].test
    assert np.array_equal(examples.targets, LABELS)
    assert examples.images.shape == NHWC.shape
    assert same is None or np.array_equal(examples.images, same)


def test_labels_of_datasets_may_be_numbers():
    split = torch.utils.data.TensorDataset(torch.zeros(4, 3), torch.rand(4, 2))
    data = DomainSet.from_tensors({"a": (split, split)})
    assert data.are_numbers
    assert np.array_equal(data["a"].train.targets, split.tensors[1])


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (Stream(), "Stream gives no pairs (x, y), as a map-style Dataset does"),
        (Pairs(), "Pairs gives no pairs (x, y)"),
        (Pairs((1, 2, 3)), "Pairs gives no pairs (x, y)"),
        (Pairs(NHWC), "Pairs gives no pairs (x, y)"),
        (Pairs((NHWC[0], 0), (NHWC[0, 1:], 0)), "x is uint8 [6, 7, 3] and uint8 [5, 7, 3]"),
        (Pairs((NHWC[0], 0), (NHWC[0], 0.5)), "y is int64 [] and float64 []"),
    ],
)
def test_datasets_that_are_none(dataset, words, one_line):
    with pytest.raises(UserError) as error:
        DomainSet.from_tensors({"a": (Pairs((NHWC[0], 0)), dataset)})
    one_line(error, "domain a, test", words)


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
