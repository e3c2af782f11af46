"""The sheet of examples: shows the right images as the model sees them, at any size and number."""

import io
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from robustmd.domains.domain import CC_BY_SA_3, Domain, DomainSet, Examples
from robustmd.domains.examples import VARIANTS, Views
from robustmd.domains.sheet import draw_sheet, evenly


def colours(domains: int, classes: int, size: tuple[int, int] = (32, 32)) -> DomainSet:
    """Every image of domain k, class c has one colour: (20k, 5c, 77)."""

    def split(k: int) -> Examples:
        labels = np.arange(classes).repeat(2)
        images = np.empty((len(labels), *size, 3), np.uint8)
        images[..., 0], images[..., 2] = 20 * k, 77
        images[..., 1] = 5 * labels[:, None, None]
        return Examples(images, labels)

    splits = (split(k) for k in range(domains))
    found = [Domain(f"domain_{k}", one, one, licence=CC_BY_SA_3) for k, one in enumerate(splits)]
    names = tuple(f"a_rather_long_class_name_{c}" for c in range(classes))
    return DomainSet("toy", tuple(found), names, "f" * 64)


def drawn(data: DomainSet, **how) -> np.ndarray:
    stream = io.BytesIO()
    draw_sheet(data, stream, **how)
    return np.asarray(Image.open(stream))


def shown(sheet: np.ndarray) -> set[tuple[int, int]]:
    """(k, c) of the colours on the sheet."""
    r, g, _ = sheet[sheet[..., 2] == 77].T.astype(int)
    return {(code // 256 // 20, code % 256 // 5) for code in set((256 * r + g)[r != g].tolist())}


@pytest.mark.parametrize(
    ("domains", "classes", "size"),
    [
        (1, 1, (1, 1)),
        (2, 2, (256, 256)),
        (2, 37, (1, 1)),
        (2, 37, (256, 256)),
        (2, 37, (40, 70)),
        (10, 10, (32, 32)),
        (10, 10, (40, 70)),
    ],
)
def test_every_class_of_every_domain_is_on_it(domains, classes, size):
    sheet = drawn(colours(domains, classes, size))
    wanted = {(k, c) for k in range(domains) for c in range(classes) if 20 * k != 5 * c}
    assert wanted <= shown(sheet)
    assert sheet.shape[1] <= 1250


def test_the_same_data_gives_the_same_sheet():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    labels = np.arange(40) % 2
    data = DomainSet.from_tensors({"a": (images, labels, images, labels)})
    assert np.array_equal(drawn(data), drawn(data))
    stream = io.BytesIO()
    draw_sheet(data, stream, form="pdf")
    assert stream.getvalue().startswith(b"%PDF-")


def test_domains_and_classes_can_be_left_out():
    data = colours(4, 8)
    assert {k for k, _ in shown(drawn(data, only=["domain_1", "domain_3"]))} == {1, 3}
    assert len(shown(drawn(data, most=12, only=["domain_1", "domain_3"]))) <= 12


def test_a_class_that_a_domain_lacks_is_a_gap():
    data = colours(2, 3)
    b = data["domain_1"]
    fewer = Domain("domain_1", b.train.subset(np.arange(4)), b.test)
    sheet = drawn(DomainSet("toy", (data["domain_0"], fewer), data.classes, "f" * 64))
    assert (1, 2) not in shown(sheet)
    assert (1, 1) in shown(sheet)


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_are_pillows(variant):
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)
    split = Examples(image[None], np.zeros(1, np.int64), views=Views((variant,)))
    flips = {
        "flip_horizontal": Image.Transpose.FLIP_LEFT_RIGHT,
        "flip_vertical": Image.Transpose.FLIP_TOP_BOTTOM,
    }
    picture = Image.fromarray(image)
    if variant in flips:
        picture = picture.transpose(flips[variant])
    elif variant != "identity":
        picture = picture.rotate(int(variant[7:]), Image.Resampling.BILINEAR)
    found = split.as_seen(0, rng).astype(int)
    assert np.abs(found - np.asarray(picture).astype(int)).max() <= 1


def test_crop_noise_and_position_are_as_the_views_say():
    images = np.full((2, 40, 40, 3), 128, np.uint8)
    images[1] = 200
    views = Views(("identity", "rotate_90"), crop=32, sigma=20.0)
    split = Examples(images, np.zeros(2, np.int64), np.array([1, 0]), views)
    rng = np.random.default_rng(0)
    first, third = (split.as_seen(position, rng).astype(float) for position in (1, 3))
    assert first.shape == (32, 32, 3)
    assert third.mean() == pytest.approx(128, abs=2)
    assert third.std() == pytest.approx(20, rel=0.1)
    assert first.mean() == pytest.approx(200, abs=3)


def test_of_many_domains_some_are_shown_from_the_first_to_the_last():
    names = [f"d{k}" for k in range(1000)]
    assert evenly(names[:12], 12) == names[:12]
    some = evenly(names, 12)
    assert (len(some), some[0], some[-1]) == (12, "d0", "d999")
    assert len({int(b[1:]) - int(a[1:]) for a, b in pairwise(some)} - {90, 91}) == 0
