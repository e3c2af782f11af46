"""Flips, turns and crops against Pillow's."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from robustmd.domains.views import VARIANTS, matrix_of
from robustmd.training.pixels import cropped, turned

FLIPS = {
    "identity": lambda image: image,
    "flip_horizontal": lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "flip_vertical": lambda image: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
}
EXACT = ("identity", "flip_horizontal", "flip_vertical", "rotate_90", "rotate_180", "rotate_270")


def pixels(count: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.integers(0, 256, (count, height, width, 3), dtype=np.uint8)


def by_pillow(image: np.ndarray, variant: str) -> np.ndarray:
    picture = Image.fromarray(image)
    if variant in FLIPS:
        return np.asarray(FLIPS[variant](picture))
    degrees = float(variant.removeprefix("rotate_"))
    return np.asarray(picture.rotate(degrees, resample=Image.Resampling.BILINEAR))


def seen(images: np.ndarray, variants: list[str], corners=None, size=None) -> np.ndarray:
    matrices = torch.tensor([matrix_of(name) for name in variants])
    corners = torch.zeros(len(images), 2, dtype=torch.int64) if corners is None else corners
    return turned(torch.from_numpy(images), matrices, corners, size or images.shape[1:3]).numpy()


@pytest.mark.parametrize("side", [1, 2, 7, 32, 64, 151, 256])
def test_a_batch_of_all_variants_is_pillows(side: int) -> None:
    names = list(VARIANTS)
    images = pixels(len(names), side, side)
    for name, image, ours in zip(names, images, seen(images, names), strict=True):
        theirs = by_pillow(image, name)
        if name in EXACT:
            assert np.array_equal(ours, theirs), name
        else:  # Pillow rounds down, and computes with another precision
            difference = ours.astype(int) - theirs
            assert difference.min() >= 0, name
            assert difference.max() <= 1, name


@pytest.mark.parametrize("side", [7, 28, 32])
@pytest.mark.parametrize("degrees", ["1", "7.2", "15", "30", "75", "123.456", "359.9"])
def test_other_angles_are_pillows_too(degrees: str, side: int) -> None:
    image = pixels(1, side, side)
    theirs = by_pillow(image[0], f"rotate_{degrees}")
    difference = seen(image, [f"rotate_{degrees}"])[0].astype(int) - theirs
    assert difference.min() >= 0
    assert difference.max() <= 1


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_right_angles_are_numpys(quarter: int) -> None:
    image = pixels(1, 9, 9)
    assert np.array_equal(seen(image, [f"rotate_{90 * quarter}"])[0], np.rot90(image[0], quarter))


def test_the_corners_of_a_turned_image_are_black() -> None:
    white = np.full((1, 32, 32, 3), 255, np.uint8)
    ours = seen(white, ["rotate_45"])[0]
    assert (ours[[0, 0, -1, -1], [0, -1, 0, -1]] == 0).all()
    assert (ours[16] == 255).all()


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 999))
def test_flips_and_half_turns_of_any_shape_move_pixels_exactly(
    height: int, width: int, seed: int
) -> None:
    names = ["identity", "flip_horizontal", "flip_vertical", "rotate_180"]
    images = pixels(4, height, width, seed)
    for name, image, ours in zip(names, images, seen(images, names), strict=True):
        assert np.array_equal(ours, by_pillow(image, name))


@settings(deadline=None)
@given(st.data(), st.integers(1, 16), st.sampled_from(list(VARIANTS)))
def test_a_crop_is_a_part_of_the_turned_image(data, side: int, variant: str) -> None:
    small = data.draw(st.integers(1, side))
    top, left = (data.draw(st.integers(0, side - small)) for _ in range(2))
    images = pixels(1, side, side)
    part = seen(images, [variant], torch.tensor([[top, left]]), (small, small))
    whole = seen(images, [variant])[:, top : top + small, left : left + small]
    assert np.array_equal(part, whole)


@settings(deadline=None)
@given(st.data(), st.integers(1, 9), st.integers(1, 9))
def test_crops_are_slices_of_the_chosen_images(data, height: int, width: int) -> None:
    images = pixels(5, height, width)
    side = data.draw(st.integers(1, min(height, width)))
    rows = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
    corners = [
        (data.draw(st.integers(0, height - side)), data.draw(st.integers(0, width - side)))
        for _ in rows
    ]
    ours = cropped(torch.from_numpy(images), torch.tensor(rows), torch.tensor(corners), side)
    for row, (top, left), crop in zip(rows, corners, ours.numpy(), strict=True):
        assert np.array_equal(crop, images[row, top : top + side, left : left + side])
