"""3 domains × 5 classes of odd files: each is read right or refused by name with the reason."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robustmd.domains.folder import load
from robustmd.errors import UserError

DOMAINS = ("aquarelle", "фото", "line drawings")
CLASSES = ("Äpfel", "cat", "dog house", "りんご", "zebra")
GRAY = 200
READ = (
    "1 pixel.png",
    "wide.png",
    "rgba.png",
    "16 bit.png",
    "moving.gif",
    "named.jpg",
    "ünïcode.png",
)
REFUSED = {
    "zero.png": "empty, zero bytes",
    "text.png": "no image of a known format",
    "cut.png": "",  # Pillow's words, which differ between versions
    "loop.png": "not a file, or a link that leads nowhere",
    "dangling.png": "not a file, or a link that leads nowhere",
}


def fill(folder: Path, png_16: Callable[[np.ndarray], bytes]) -> None:
    """What can be read is of one gray."""
    folder.mkdir(parents=True)

    def gray(name: str, size: tuple[int, int] = (40, 30)) -> None:
        Image.new("RGB", size, (GRAY,) * 3).save(folder / name, name[-3:].replace("jpg", "png"))

    gray("1 pixel.png", (1, 1))
    gray("wide.png", (8000, 10))
    gray("named.jpg")  # a PNG
    gray("ünïcode.png")
    Image.new("RGBA", (20, 20), (GRAY, GRAY, GRAY, 255)).save(folder / "rgba.png")
    (folder / "16 bit.png").write_bytes(png_16(np.full((9, 9), GRAY * 257, np.uint16)))
    frames = [Image.new("L", (30, 30), value) for value in (GRAY, 0, 255)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    (folder / "zero.png").write_bytes(b"")
    (folder / "text.png").write_text("no image")
    (folder / "cut.png").write_bytes((folder / "named.jpg").read_bytes()[:-30])
    for hidden in (".DS_Store", ".hidden.png", "._named.jpg", "Thumbs.db"):
        (folder / hidden).write_bytes(b"\0\1\2")
    (folder / "notes.txt").write_text("not an image by its name")
    (folder / "loop.png").symlink_to("loop.png")
    (folder / "dangling.png").symlink_to("gone.png")
    (folder / "up").symlink_to("..")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory, png_16: Callable[[np.ndarray], bytes]) -> Path:
    if sys.platform == "win32":
        pytest.skip("needs symbolic links")
    root = tmp_path_factory.mktemp("odd") / "my images"
    for domain in DOMAINS:
        for label in CLASSES:
            fill(root / domain / label, png_16)
        (root / domain / ".hidden").mkdir()
        (root / domain / "back").symlink_to(root)
    (root / ".git").mkdir()
    (root / "README.md").write_text("mine")
    (root / "all").symlink_to(root)
    return root


def test_every_odd_file_is_refused_by_name_with_its_reason(odd: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        load(tmp_path, root=odd)
    message = str(error.value)
    assert "\n" not in message
    assert f"{15 * len(REFUSED)} of {15 * (len(READ) + len(REFUSED))} images" in message
    assert "and 65 more" in message
    for name, reason in REFUSED.items():
        assert f"aquarelle/cat/{name} ({reason}" in message


def test_every_other_odd_file_is_read_right(odd: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    data = load(tmp_path, root=odd, skip_unreadable=True, say=lines.append)
    assert data.names == tuple(sorted(DOMAINS))
    assert data.classes == tuple(sorted(CLASSES))
    for domain in data:
        assert len(domain.train) + len(domain.test) == len(CLASSES) * len(READ)
        for split in (domain.train, domain.test):
            assert split.rows is not None
            np.testing.assert_array_equal(split.images[split.rows], GRAY)
            assert set(split.targets.tolist()) == set(range(len(CLASSES)))
    assert any("passed over" in line and "README.md" in line for line in lines)
    assert not any("DS_Store" in line or "hidden" in line or "Thumbs" in line for line in lines)


def test_a_name_of_stray_bytes_is_shown_and_does_not_break_the_line(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("this file system takes no such names")
    for domain in "ab":
        folder = tmp_path / "root" / domain / "x"
        folder.mkdir(parents=True)
        Image.new("L", (4, 4)).save(folder / "fine.png")
        for stray in (b"caf\xe9.png", b"two\nlines.png"):
            (folder / os.fsdecode(stray)).write_bytes(b"")
    with pytest.raises(UserError, match=r"two\\nlines\.png") as error:
        load(tmp_path / "cache", root=tmp_path / "root")
    str(error.value).encode("utf-8")  # can be printed
    bad = tmp_path / "root" / os.fsdecode(b"dom\xe9") / "x"
    bad.mkdir(parents=True)
    with pytest.raises(UserError, match="printable characters"):
        load(tmp_path / "cache", root=tmp_path / "root")
