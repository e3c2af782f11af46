"""One file, one image: every mode, orientation and container is read as what it shows."""

import io
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, features

from robustmd.domains.decoding import UnreadableError, decode, quietly

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
GRAY = 200


def plain(color: object, mode: str = "RGB", size: tuple[int, int] = (40, 40)) -> Image.Image:
    return Image.new(mode, size, color)  # type: ignore[arg-type]


PALETTE = plain(RED).quantize(4)
NEEDS_WEBP = pytest.mark.skipif(not features.check("webp"), reason="this Pillow has no WebP")


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


def shows(path: Path, color: tuple[int, int, int], tolerance: int = 0) -> None:
    found = decode(path, 8)[0]
    assert found.dtype == np.uint8
    assert found.shape == (8, 8, 3)
    assert np.abs(found.astype(int) - color).max() <= tolerance


@pytest.mark.parametrize(
    ("image", "name", "options", "color", "tolerance"),
    [
        (plain(RED), "a.png", {}, RED, 0),
        (plain(GRAY, "L"), "a.png", {}, (GRAY,) * 3, 0),
        (plain(1, "1"), "a.png", {}, WHITE, 0),
        (plain(RED).quantize(4), "a.png", {}, RED, 0),
        (plain(BLUE), "a.bmp", {}, BLUE, 0),
        (plain(BLUE), "a.tif", {"compression": "tiff_lzw"}, BLUE, 0),
        (plain(BLUE), "a.ppm", {}, BLUE, 0),
        (plain(BLUE), "a.jpg", {"quality": 95}, BLUE, 3),
        (plain(GRAY, "L"), "gray.jpg", {}, (GRAY,) * 3, 1),
        (plain((0, 255, 255, 0), "CMYK"), "a.jpg", {"quality": 95}, RED, 3),
        pytest.param(plain(GREEN), "a.webp", {"lossless": True}, GREEN, 0, marks=NEEDS_WEBP),
        (plain(RED), "a.gif", {"save_all": True, "append_images": [plain(GREEN)]}, RED, 0),
        # White is behind what is transparent.
        (plain((255, 0, 0, 0), "RGBA"), "a.png", {}, WHITE, 0),
        (plain((255, 0, 0, 255), "RGBA"), "a.png", {}, RED, 0),
        (plain((0, 0), "LA"), "a.png", {}, WHITE, 0),
        (plain((255, 0, 0, 127), "RGBA"), "a.png", {}, (255, 128, 128), 1),
        (PALETTE, "a.png", {"transparency": PALETTE.getpixel((0, 0))}, WHITE, 0),
        (PALETTE, "a.gif", {"transparency": PALETTE.getpixel((0, 0))}, WHITE, 0),
    ],
)
def test_8_bit_modes_show_their_colour(write, image, name, options, color, tolerance):
    shows(write(image, name, **options), color, tolerance)


def test_16_bit_images_keep_their_range_instead_of_saturating(write, png_16):
    gray = np.full((10, 10), GRAY * 257, np.uint16)
    rgb = np.full((10, 10, 3), (65535, 0, 0), np.uint16)
    shows(write(png_16(gray)), (GRAY,) * 3)
    shows(write(png_16(gray, transparent=GRAY * 257)), WHITE)
    shows(write(png_16(gray, transparent=GRAY)), (GRAY,) * 3)
    shows(write(png_16(rgb)), RED)
    shows(write(png_16(rgb, transparent=(1, 2, 3))), RED)
    shows(write(Image.fromarray(gray), "a.tif"), (GRAY,) * 3)
    shows(write(b"P5 2 2 65535\n" + struct.pack(">4H", *[GRAY * 257] * 4), "a.pgm"), (GRAY,) * 3)


@pytest.mark.parametrize(("value", "dim"), [(0, False), (200, True), (4095, True), (4096, False)])
def test_12_bits_stored_in_16_are_noticed(write, png_16, value, dim):
    gray = np.zeros((10, 10), np.uint16)
    gray[5, 5] = value
    assert decode(write(png_16(gray)), 8)[1] == dim
    assert not decode(write(plain(2, "L")), 8)[1]  # dark, and not of 16 bits


@pytest.mark.parametrize("mode", ["F", "I"])
def test_32_bit_pixels_have_no_known_range(write, mode):
    with pytest.raises(UnreadableError, match="32-bit"):
        decode(write(plain(1, mode), "a.tif"), 8)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_images_are_turned_upright(write, orientation, suffix):
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
    options = {"exif": exif} | ({"quality": 95, "subsampling": 0} if suffix == "jpg" else {})
    path = write(Image.fromarray(np.ascontiguousarray(stored)), f"a.{suffix}", **options)
    assert np.abs(decode(path, 64)[0].astype(int) - scene).max() <= 12


def test_the_shorter_side_is_resized_and_the_centre_cropped(write):
    noise = np.random.default_rng(0).integers(0, 256, (30, 90, 3), np.uint8)
    for image in (noise, np.ascontiguousarray(noise.transpose(1, 0, 2))):
        height, width = (8, 24) if image.shape[1] == 90 else (24, 8)
        small = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
        top, left = (height - 8) // 2, (width - 8) // 2
        expected = np.asarray(small)[top : top + 8, left : left + 8]
        found = decode(write(Image.fromarray(image)), 8)[0]
        assert np.abs(found.astype(int) - expected).max() <= 1


def test_a_large_jpeg_decoded_at_a_fraction_is_as_good(write):
    rough = np.random.default_rng(1).integers(0, 256, (12, 12, 3), np.uint8)
    smooth = Image.fromarray(rough).resize((1200, 1200), Image.Resampling.BICUBIC)
    found = decode(write(smooth, "a.jpg", quality=95), 32)[0]
    full = smooth.resize((32, 32), Image.Resampling.BILINEAR)
    assert np.abs(found.astype(int) - np.asarray(full)).mean() < 1.5


def test_the_content_decides_not_the_name(write):
    for kind in ("PNG", "GIF", "BMP"):
        stream = io.BytesIO()
        plain(RED).save(stream, kind)
        shows(write(stream.getvalue(), "a.jpg"), RED)


def test_damaged_exif_data_do_not_matter(write):
    path = write(plain(GRAY, "L"), "a.jpg", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01")
    with quietly():
        shows(path, (GRAY,) * 3, tolerance=1)


def test_what_is_no_image_is_refused_with_the_reason(write, tmp_path):
    stream = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(stream, "JPEG")
    refused = {
        write(b"", "empty.png"): "zero bytes",
        write(b"not an image at all", "text.png"): "known format",
        write(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "a.eps"): "known format",
        write(stream.getvalue()[:-400], "cut.jpg"): "truncated",
        write(b"\x89PNG\r\n\x1a\n" + b"\0" * 60, "zeros.png"): "known format",
        tmp_path: "not a file",
        tmp_path / "gone.png": "not a file",
        tmp_path / "pipe.png": "not a file",  # not waited for
    }
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.png")
    for path, reason in refused.items():
        with pytest.raises(UnreadableError, match=rf"^[^\n]*{reason}[^\n]*$"):
            decode(path, 8)


@pytest.mark.parametrize("factor", [1.5, 3])  # Pillow warns from 1 on, and raises from 2 on
def test_decompression_bombs_are_refused(write, monkeypatch, factor):
    path = write(plain(RED, size=(100, 100)))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", int(10_000 / factor))
    with quietly(), pytest.raises(UnreadableError, match="decompression bomb"):
        decode(path, 8)
