"""One file, one image: every mode, orientation and container is read as what it shows."""

import io
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robustmd.domains.image_files import decode

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
GRAY = 200


def plain(color: object, mode: str = "RGB", size: tuple[int, int] = (40, 40)) -> Image.Image:
    return Image.new(mode, size, color)  # type: ignore[arg-type]


PALETTE = plain(RED).quantize(4)


@pytest.fixture
def write(tmp_path):
    def save(image: Image.Image | bytes, name: str = "image.png", **options: object) -> Path:
        path = tmp_path / name
        if isinstance(image, bytes):
            path.write_bytes(image)
        else:
            image.save(path, **options)
        return path

    return save


def read(path: Path, size: int = 8) -> np.ndarray | str:
    (image,) = decode([path], size)
    return image


def shows(path: Path, color: tuple[int, int, int], tolerance: int = 0) -> None:
    image = read(path)
    assert not isinstance(image, str), image
    assert (image.dtype, image.shape) == (np.uint8, (8, 8, 3))
    assert np.abs(image.astype(int) - color).max() <= tolerance


@pytest.mark.parametrize(
    ("image", "name", "options", "color", "tolerance"),
    [
        (plain(RED), "a.png", {}, RED, 0),
        (plain(1, "1"), "a.png", {}, WHITE, 0),
        (PALETTE, "a.png", {}, RED, 0),
        (plain(BLUE), "a.tif", {"compression": "tiff_lzw"}, BLUE, 0),
        (plain(GRAY, "L"), "gray.jpg", {}, (GRAY,) * 3, 1),
        (plain((0, 255, 255, 0), "CMYK"), "a.jpg", {"quality": 95}, RED, 3),
        (plain(RED), "a.gif", {"save_all": True, "append_images": [plain(GREEN)]}, RED, 0),
        # White is behind what is transparent.
        (plain((255, 0, 0, 127), "RGBA"), "a.png", {}, (255, 128, 128), 1),
        (plain((0, 0), "LA"), "a.png", {}, WHITE, 0),
        (PALETTE, "a.gif", {"transparency": PALETTE.getpixel((0, 0))}, WHITE, 0),
    ],
)
def test_8_bit_modes_show_their_colour(write, image, name, options, color, tolerance):
    shows(write(image, name, **options), color, tolerance)


def test_16_bit_images_keep_their_range_instead_of_saturating(write):
    gray = Image.fromarray(np.full((10, 10), GRAY * 257, np.uint16))
    shows(write(gray), (GRAY,) * 3)
    shows(write(gray, "a.tif"), (GRAY,) * 3)
    shows(write(b"P5 2 2 65535\n" + struct.pack(">4H", *[GRAY * 257] * 4), "a.pgm"), (GRAY,) * 3)
    for mode in "IF":
        assert "32-bit" in read(write(plain(1, mode), "a.tif"))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright(write, orientation):
    """The stored pixels are the scene as the EXIF standard's table of orientations stores it."""
    scene = np.zeros((64, 64, 3), np.uint8)
    scene[:32, :32], scene[:32, 32:], scene[32:, :32] = RED, GREEN, BLUE  # corners tell all eight
    stored = {
        1: scene,
        2: scene[:, ::-1],
        3: scene[::-1, ::-1],
        4: scene[::-1],
        5: scene.transpose(1, 0, 2),
        6: np.rot90(scene, 1),
        7: scene[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(scene, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = write(Image.fromarray(np.ascontiguousarray(stored)), exif=exif)
    assert np.array_equal(read(path, 64), scene)


def test_damaged_exif_data_do_not_matter(write):
    path = write(plain(GRAY, "L"), "a.jpg", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01")
    shows(path, (GRAY,) * 3, tolerance=1)


def test_the_shorter_side_is_resized_and_the_centre_cropped(write):
    noise = np.random.default_rng(0).integers(0, 256, (30, 90, 3), np.uint8)
    for image, (width, height) in ((noise, (24, 8)), (noise.transpose(1, 0, 2).copy(), (8, 24))):
        small = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
        top, left = (height - 8) // 2, (width - 8) // 2
        expected = np.asarray(small)[top : top + 8, left : left + 8]
        assert np.abs(read(write(Image.fromarray(image))).astype(int) - expected).max() <= 1


def test_the_content_decides_and_what_is_no_image_is_refused_with_the_reason(write, tmp_path):
    stream = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(stream, "JPEG")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "loop.png").symlink_to("loop.png")
    reasons = {
        write(b"", "empty.png"): "known format",
        write(b"not an image at all", "text.png"): "known format",
        write(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "eps.png"): "known format",
        write(stream.getvalue()[:-400], "cut.jpg"): "truncated",
        tmp_path: "not a file",
        tmp_path / "loop.png": "not a file",
        tmp_path / "pipe.png": "not a file",  # not waited for
    }
    for image, reason in zip(decode([*reasons], 8), reasons.values(), strict=True):
        assert reason in image
        assert "\n" not in image
    assert not isinstance(read(write(stream.getvalue(), "a.png")), str)


def test_decompression_bombs_are_refused(write, monkeypatch):
    path = write(plain(RED, size=(100, 100)))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 3_000)
    assert "exceeds limit" in read(path)
