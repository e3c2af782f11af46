"""data=digits_mini: what comes with the package, and what is drawn."""

import hashlib
import re
import subprocess
import sys

import numpy as np
import pytest

from robustmd.domains import glyphs, printed


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def data(cache):
    return glyphs.load(cache)


def stream(number=0):
    return np.random.Generator(np.random.Philox(key=[1, number]))


def test_two_domains_of_the_stated_sizes(data):
    assert data.name == "digits_mini"
    assert data.names == ("handwritten", "printed")
    assert data.image_size == (32, 32)
    assert [(len(d.train), len(d.test)) for d in data] == [(1400, 397), (6000, 1000)]
    assert "CC BY 4.0" in data["handwritten"].licence


def test_packaged_file_is_the_one_described():
    text = glyphs.UCI_FILE.with_suffix(".md").read_text(encoding="utf-8")
    digest = hashlib.sha256(glyphs.UCI_FILE.read_bytes()).hexdigest()
    assert digest in text
    assert "10.24432/C50P49" in text
    with np.load(glyphs.UCI_FILE, allow_pickle=False) as file:
        images, labels = file["images"], file["labels"]
    assert images.shape == (1797, 8, 8)
    assert images.max() == 16
    # The counts that the set's own description gives for its test digits 0 to 9.
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_every_handwritten_digit_is_used_once(data):
    with np.load(glyphs.UCI_FILE, allow_pickle=False) as file:
        original = {
            (glyphs._enlarged(image).tobytes(), int(label))
            for image, label in zip(file["images"], file["labels"], strict=True)
        }
    splits = (data["handwritten"].train, data["handwritten"].test)
    found = [
        {(image.tobytes(), int(label)) for image, label in zip(e.images, e.labels, strict=True)}
        for e in splits
    ]
    assert found[0].isdisjoint(found[1])
    assert found[0] | found[1] == original
    assert len(original) == 1797


def test_enlarging_keeps_the_picture(data):
    """Averaged back to 8×8 cells of 3.5 pixels the digit is the original, within ringing."""
    image = np.zeros((8, 8), np.uint8)
    image[2:6, 2:6] = 16
    large = glyphs._enlarged(image)
    assert large.shape == (32, 32, 3)
    assert np.ptp(large, axis=2).max() == 0
    assert large[:2].max() == large[-2:].max() == large[:, :2].max() == large[:, -2:].max() == 0
    assert large[12:20, 12:20].min() >= 250
    assert large[2:6, 2:6].max() == 0
    inner = large[2:30, 2:30, 0].astype(float)
    assert inner.mean() == pytest.approx(255 * 16 / 64, rel=0.05)


def test_printed_classes_are_equally_frequent_and_shuffled(data):
    for split, each in (("train", 600), ("test", 100)):
        labels = data["printed"].split(split).targets
        assert np.bincount(labels).tolist() == [each] * 10
        assert np.abs(np.diff(labels)).max() > 1


def test_same_seed_same_pixels_and_other_stream_other_pixels():
    labels = np.arange(10)
    first, again, other = (np.stack(list(printed.draw(labels, stream(n)))) for n in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("split", ["train", "test"])
def test_printed_digits_are_drawn_alike_again(data, split):
    """Whoever has the seed has the digits: the same labels, the same pixels."""
    stream_number, count = glyphs.PRINTED[split]
    rng = glyphs._stream(stream_number)
    labels = rng.permutation(np.arange(count) % 10)
    examples = data["printed"].split(split)
    assert np.array_equal(labels, examples.targets)
    for drawn, kept in zip(printed.draw(labels[:100], rng), examples.images, strict=False):
        assert np.array_equal(drawn, kept)


def test_second_start_draws_nothing(cache, data, monkeypatch):
    monkeypatch.setattr(glyphs, "_build", None)
    lines = []
    assert glyphs.load(cache, say=lines.append).fingerprint == data.fingerprint
    assert lines == []


def test_every_font_draws_ten_different_digits():
    for name in printed.FONTS:
        font = printed._font(name, 40)
        masks = {bytes(font.getmask(str(digit))) for digit in range(10)}
        assert len(masks) == 10, name


def test_colours_can_be_told_apart():
    for _ in range(200):
        background, ink = printed._colours(stream())
        assert np.abs(np.subtract(background, ink)).mean() >= printed.COLOUR_DISTANCE


def test_light_and_noise_are_of_the_stated_size(monkeypatch):
    gray = np.full((32, 32, 3), 128, np.uint8)
    rng = stream()
    monkeypatch.setattr(printed, "LIGHTING", 0.0)
    spread = [printed._disturb(gray, rng).std() for _ in range(300)]
    assert 2 <= min(spread) < 4
    assert 23 < max(spread) <= 26
    monkeypatch.setattr(printed, "LIGHTING", 20.0)
    monkeypatch.setattr(printed, "NOISE", (0.0, 0.0))
    images = [printed._disturb(gray, rng).astype(float) for _ in range(400)]
    down = [(image[-1] - image[0]).mean() / 2 for image in images]
    across = [(image[:, -1] - image[:, 0]).mean() / 2 for image in images]
    assert np.std(down) == pytest.approx(20, rel=0.15)
    assert np.std(across) == pytest.approx(20, rel=0.15)
    assert abs(np.corrcoef(down, across)[0, 1]) < 0.2


def test_digit_is_in_the_middle_within_its_shift(monkeypatch):
    """Without neighbours and rotation, the ink's box is centred up to 8 pixels of 64 off."""
    monkeypatch.setattr(printed, "NEIGHBOUR", 0.0)
    monkeypatch.setattr(printed, "ROTATION", 0.0)
    rng, offsets = stream(), []
    for label in np.arange(200) % 10:
        image = printed._house_number(int(label), rng).astype(int)
        ink = np.abs(image - image[0, 0]).sum(axis=2) > 0
        assert not ink[[0, -1]].any()  # a digit of the largest size is whole
        for axis in (0, 1):
            places = np.flatnonzero(ink.any(axis=axis))
            offsets.append((places[0] + places[-1] + 1) / 2 - 16)
    assert np.abs(offsets).max() <= 4 + 1  # 8 of 64 are 4 of 32; rounding
    assert np.abs(offsets).max() > 3


def test_neighbours_stand_where_they_should(monkeypatch):
    """At probability 1 there is ink left and right of the digit, at 0 there is less of it."""
    ink = {}
    for probability in (0.0, 1.0):
        monkeypatch.setattr(printed, "NEIGHBOUR", probability)
        rng = stream()
        images = [printed._house_number(1, rng).astype(int) for _ in range(100)]
        differs = [np.abs(i - np.median(i, axis=(0, 1))).sum(axis=2) > 60 for i in images]
        ink[probability] = np.mean(differs, axis=(0, 1))
    assert ink[1.0][:6].mean() > 5 * ink[0.0][:6].mean()
    assert ink[1.0][-6:].mean() > 5 * ink[0.0][-6:].mean()


def test_domains_import_nothing_heavy():
    """Only what is used is loaded: no torch, torchvision, scipy or matplotlib on import."""
    program = (
        "import sys, robustmd.domains.digits, robustmd.domains.glyphs; "
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\b(torch|torchvision|scipy|matplotlib|pandas)\b", found)
