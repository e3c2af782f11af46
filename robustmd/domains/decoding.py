"""One image file, whatever it is, as the small RGB square that a model sees.

In this order: the first frame, decoded; turned upright as its EXIF orientation says; brought to
8-bit RGB, with white behind anything transparent; the largest centred square, resized. That is the
shorter side resized to the wanted size and then a centre crop, without ever making the large image
that a very long and thin one would become. Colour profiles are not applied.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

# The content decides, not the name. Only formats that Pillow decodes by itself: EPS, for one, would
# be handed to another program.
FORMATS = ("PNG", "JPEG", "MPO", "BMP", "GIF", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".avif"}
    | {".ppm", ".pgm", ".pbm", ".jp2"}
)
# A JPEG may be decoded at a fraction of its size if that leaves this many times the wanted one;
# at 3, says Pillow of its reducing_gap, the result is hardly told from the full one.
REDUCING_GAP = 3
ORIENTATION = 0x0112  # its EXIF tag; 1 is upright
AHEAD = 8  # files for each thread that are decoded before the first is taken
_16_BITS_TO_8 = 257  # 65535 / 255
_12_BITS = 4095  # the largest value of 12 bits


class UnreadableError(Exception):
    """Why a file gives no image, in a few words."""


def decode_all(paths: Sequence[Path], size: int) -> Iterator[tuple[np.ndarray, bool] | str]:
    """What `decode` gives of each file, or why there is no image; in order.

    By threads, one a core, since Pillow lets go of the interpreter while it decodes and resizes.
    What is in memory does not grow with the number of files.
    """

    def result(path: Path) -> tuple[np.ndarray, bool] | str:
        try:
            return decode(path, size)
        except UnreadableError as error:
            return str(error)

    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    waiting: deque[Future[tuple[np.ndarray, bool] | str]] = deque()
    with quietly(), ThreadPoolExecutor(count, thread_name_prefix="decode") as pool:
        try:
            for path in paths:
                waiting.append(pool.submit(result, path))
                if len(waiting) >= AHEAD * (count or 1):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # whoever takes the images may stop half-way
            pool.shutdown(cancel_futures=True)


def decode(path: Path, size: int) -> tuple[np.ndarray, bool]:
    """The image in `path`, uint8 [size, size, 3], and whether it is dim: it has 16 bits, and all of
    its values fit into 12.

    Raises UnreadableError. Call it within `quietly()`, which makes Pillow refuse decompression
    bombs: more than PIL.Image.MAX_IMAGE_PIXELS pixels, 89 million unless changed.
    """
    Image.init()
    formats = [name for name in FORMATS if name in Image.OPEN]  # that this Pillow was built with
    try:
        # Nothing but a file is opened: reading a pipe might never end.
        if not path.is_file():
            raise UnreadableError("not a file, or a link that leads nowhere")
        if path.stat().st_size == 0:
            raise UnreadableError("empty, zero bytes")
        with Image.open(path, formats=formats) as image:
            image.draft(None, (REDUCING_GAP * size, REDUCING_GAP * size))
            color, dim = _rgb(_upright(image), image.format)
            fitted = ImageOps.fit(color, (size, size), Image.Resampling.BILINEAR)
            return np.asarray(fitted), dim
    except UnreadableError:
        raise
    except Image.UnidentifiedImageError:
        raise UnreadableError("no image of a known format") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        limit = f"{Image.MAX_IMAGE_PIXELS:,}"
        raise UnreadableError(f"more than {limit} pixels, perhaps a decompression bomb") from None
    except Exception as error:  # a decoder may raise anything over bytes that are damaged
        text = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise UnreadableError(text[:80] or type(error).__name__) from None


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Decompression bombs are errors within the block, Pillow's other warnings silent.

    The filters are the process's own: enter it once, around the threads that decode.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def _upright(image: Image.Image) -> Image.Image:
    """Turned and mirrored as the EXIF orientation says; damaged EXIF data say nothing."""
    image.load()  # outside the try: damaged pixels are no matter of EXIF
    try:
        turned = image.getexif().get(ORIENTATION, 1) != 1
        return ImageOps.exif_transpose(image) or image if turned else image
    except Exception:
        return image


def _rgb(image: Image.Image, file_format: str | None) -> tuple[Image.Image, bool]:
    """8-bit RGB of any mode, and whether it is dim. Raises UnreadableError for
    pixels without a known range."""
    # 16-bit gray comes as 32-bit integers from PNG in older versions of Pillow, from PPM in all.
    if image.mode.startswith("I;16") or (image.mode == "I" and file_format in ("PNG", "PPM")):
        wide = np.asarray(image)
        dim = 0 < wide.max() <= _12_BITS
        clear = image.info.get("transparency")  # the one value that is, if any
        gray = np.where(wide == clear, 255, np.rint(wide / _16_BITS_TO_8)).clip(0, 255)
        return Image.fromarray(gray.astype(np.uint8)).convert("RGB"), bool(dim)
    if image.mode in ("I", "F"):
        raise UnreadableError("32-bit pixels, whose range is not known; save it with 8 or 16 bits")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        clear = image.convert("LA" if image.mode == "La" else "RGBA").convert("RGBA")
        white = Image.new("RGBA", clear.size, "white")
        return Image.alpha_composite(white, clear).convert("RGB"), False
    return image.convert("RGB"), False
