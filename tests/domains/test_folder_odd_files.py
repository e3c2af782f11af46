"""Odd files and links among the images: passed over, or refused by name with the reason."""

import os
import sys
from pathlib import Path

import pytest
from PIL import Image
from refusals import refused

from robustmd.domains.folder import load

DOMAINS = ("aquarelle", "фото", "line drawings")
CLASSES = ("Äpfel", "dog house", "りんご")
UNREADABLE = (
    "zero.png (empty, zero bytes",
    "text.png (no image of a known format",
    "loop.png (not a file, or a link that leads nowhere",
    "dangling.png (not a file, or a link that leads nowhere",
)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Two fine images in each class, among odd files and links."""
    if sys.platform == "win32":
        pytest.skip("needs symbolic links")
    root = tmp_path / "my images"
    for folder in (root / domain / label for domain in DOMAINS for label in CLASSES):
        folder.mkdir(parents=True)
        for name in ("ünïcode.png", "fine.png"):
            Image.new("L", (8, 8), 200).save(folder / name)
        (folder / "zero.png").write_bytes(b"")
        (folder / "text.png").write_text("no image")
        for hidden in (".DS_Store", ".hidden.png", "._named.jpg", "Thumbs.db"):
            (folder / hidden).write_bytes(b"\0\1\2")
        (folder / "notes.txt").write_text("not an image by its name")
        for link, target in (("loop.png", "loop.png"), ("dangling.png", "gone.png"), ("up", "..")):
            (folder / link).symlink_to(target)
    (root / ".git").mkdir()
    (root / "README.md").write_text("mine")
    (root / "all").symlink_to(root)
    return root


def test_odd_files_are_refused_by_name_or_left_out(odd, tmp_path):
    with refused("36 of 54 images", *(f"aquarelle/dog house/{x}" for x in UNREADABLE)):
        load(tmp_path, root=odd)
    lines: list[str] = []
    data = load(tmp_path, root=odd, skip_unreadable=True, say=lines.append)
    assert (data.names, data.classes) == (tuple(sorted(DOMAINS)), tuple(sorted(CLASSES)))
    for domain in data:
        assert len(domain.train) + len(domain.test) == 6
        assert (domain.train.images == 200).all()
    assert any("passed over" in line and "README.md" in line for line in lines)
    assert not any("DS_Store" in line or "hidden" in line or "Thumbs" in line for line in lines)


def test_a_name_of_stray_bytes_is_shown_and_does_not_break_the_line(tmp_path):
    if sys.platform != "linux":
        pytest.skip("this file system takes no such names")
    for domain in "ab":
        folder = tmp_path / "root" / domain / "x"
        folder.mkdir(parents=True)
        Image.new("L", (4, 4)).save(folder / "fine.png")
        for stray in (b"caf\xe9.png", b"two\nlines.png"):
            (folder / os.fsdecode(stray)).write_bytes(b"")
    with refused(r"two\nlines.png") as error:
        load(tmp_path / "cache", root=tmp_path / "root")
    str(error.value).encode("utf-8")  # can be printed
    bad = tmp_path / "root" / os.fsdecode(b"dom\xe9") / "x"
    bad.mkdir(parents=True)
    with refused("printable characters"):
        load(tmp_path / "cache", root=tmp_path / "root")
