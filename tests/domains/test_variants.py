"""Flips, turns and crops are Pillow's; noise is Gaussian and its own for every key and pixel."""

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from robustmd.domains.pets import EXPANSION
from robustmd.domains.variants import (
    GOLDEN,
    cropped,
    keys_of_images,
    matrix_of,
    mixed,
    noise_table,
    turned,
    turned_places,
    with_noise,
)

GRAY = 128

FLIPS = {
    "identity": lambda image: image,
    "flip_horizontal": lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "flip_vertical": lambda image: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
}
EXACT = ("identity", "flip_horizontal", "flip_vertical", "rotate_90", "rotate_180", "rotate_270")
OTHER_ANGLES = ("1", "7.2", "15", "30", "75", "123.456", "359.9")


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
    whole = images.shape[1:3]
    places = turned_places(matrices, corners, size or whole, whole)
    return turned(torch.from_numpy(images), *places).numpy()


@pytest.mark.parametrize("side", [1, 2, 28, 151])
def test_a_batch_of_all_variants_and_other_angles_is_pillows(side: int) -> None:
    names = [*EXPANSION, *(f"rotate_{degrees}" for degrees in OTHER_ANGLES)]
    images = pixels(len(names), side, side)
    for name, image, ours in zip(names, images, seen(images, names), strict=True):
        theirs = by_pillow(image, name)
        if name in EXACT:
            assert np.array_equal(ours, theirs), name
        else:  # Pillow rounds down, and computes with another precision
            difference = ours.astype(int) - theirs
            assert difference.min() >= 0, name
            assert difference.max() <= 1, name


@settings(max_examples=30)
@given(st.data(), st.integers(1, 16), st.sampled_from(list(EXPANSION)))
def test_a_crop_is_a_part_of_the_turned_image(data, side: int, variant: str) -> None:
    small = data.draw(st.integers(1, side))
    top, left = (data.draw(st.integers(0, side - small)) for _ in range(2))
    images = pixels(1, side, side)
    part = seen(images, [variant], torch.tensor([[top, left]]), (small, small))
    whole = seen(images, [variant])[:, top : top + small, left : left + small]
    assert np.array_equal(part, whole)


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


# --- noise ----------------------------------------------------------------------------------


def noise(sigma: float, keys: torch.Tensor, side: int = 32) -> np.ndarray:
    """What is added to images of middle gray: int [m, side, side, 3]."""
    gray = torch.full((len(keys), side, side, 3), GRAY, dtype=torch.uint8)
    return with_noise(gray, keys, noise_table(sigma)).numpy().astype(int) - GRAY


def some_keys(count: int, start: int = 0) -> torch.Tensor:
    return keys_of_images(start, torch.arange(count))


def test_the_bits_are_splitmix64s() -> None:
    """The first outputs for the seed 1234567 that its authors' C code gives."""
    states = torch.arange(1, 6) * GOLDEN + 1234567
    assert [value % 2**64 for value in mixed(states).tolist()] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_the_distribution_is_normal() -> None:
    values, counts = np.unique(noise(10.0, some_keys(400)), return_counts=True)
    edges = np.array([-np.inf, *np.arange(-34.5, 35), np.inf])
    expected = np.diff(scipy.stats.norm.cdf(edges / 10.0)) * counts.sum()
    there = np.histogram(values, edges, weights=counts)[0]
    assert scipy.stats.chisquare(there, expected).pvalue > 1e-4


def test_pixels_channels_and_images_have_noise_of_their_own() -> None:
    values = noise(20.0, some_keys(500), side=16).reshape(500, -1).astype(float)
    limit = 5 / np.sqrt(values.size)
    for shift in (1, 3, 48):  # neighbouring channels, pixels and rows
        assert abs(np.corrcoef(values[:, :-shift].ravel(), values[:, shift:].ravel())[0, 1]) < limit
    assert abs(np.corrcoef(values[:-1].ravel(), values[1:].ravel())[0, 1]) < limit


@settings(max_examples=30)
@given(st.integers(0, 2**63 - 1), st.integers(1, 9), st.integers(1, 9))
def test_an_images_noise_depends_on_its_key_alone(key: int, height: int, width: int) -> None:
    random = np.random.default_rng(key)
    images = torch.from_numpy(random.integers(0, 256, (3, height, width, 3), dtype=np.uint8))
    keys = torch.tensor([1, key, 2])
    together = with_noise(images, keys, noise_table(9.0))
    alone = with_noise(images[1:2], keys[1:2], noise_table(9.0))
    assert together[1].equal(alone[0])
    assert together.shape == images.shape


def test_it_ends_at_black_and_white() -> None:
    ends = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1).expand(2, 32, 32, 3)
    noisy = with_noise(ends, some_keys(2), noise_table(1e6)).numpy()
    assert ((noisy == 0) | (noisy == 255)).mean() > 0.99
