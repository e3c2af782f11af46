"""A preparation of images that is killed goes on where it was, and is never taken for whole."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robustmd.domains import arrays, prepared_images
from robustmd.domains.checksums import stamp_of
from robustmd.domains.listing import Listed, Listing
from robustmd.domains.prepared_images import prepare

UNREADABLE = {"a": 3, "b": 8}
KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_resumed_preparation import prepared_until
prepared_until(Path(sys.argv[1]), 13, lambda: os.kill(os.getpid(), signal.SIGKILL))
"""


def prepared_until(folder: Path, last: int, cut) -> None:
    """Prepare the images, with a mark at each, until the `last` is to be taken."""
    decoded, taken = prepared_images.decoded, iter(range(last))

    def until_cut(paths, size):
        for result in decoded(paths, size):
            if next(taken, None) is None:
                cut()
            yield result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "MARK_SECONDS", 0.0)
        patch.setattr(prepared_images, "decoded", until_cut)
        prepare(listing_of(folder / "images"), folder / "cache", 8, print)


def listing_of(folder: Path) -> Listing:
    """The files of two domains' folders, as a listing."""
    files = []
    for path in sorted(folder.glob("*/*")):
        relative = path.relative_to(folder).as_posix()
        label = f"class_{path.stem[-1]}"
        files.append(Listed(path.parent.name, label, "", relative, stamp_of(path)))
    return Listing(folder, folder, files)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for domain in ("a", "b"):
        (tmp_path / "images" / domain).mkdir(parents=True)
        for number in range(10):
            path = tmp_path / "images" / domain / f"{number}.png"
            Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(path)
    for domain, number in UNREADABLE.items():
        (tmp_path / "images" / domain / f"{number}.png").write_bytes(b"no image")
    return tmp_path


def interrupted_at(folder: Path, image: int) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepared_until(folder, image, interrupt)


@pytest.fixture
def resume(folder: Path, decodings: list[int]):
    """Prepare, see that it is what the files show, and that what could not be read is known;
    returns how many images were decoded for it, and what was said."""

    def go():
        decodings.clear()
        lines: list[str] = []
        found = prepare(listing_of(folder / "images"), folder / "cache", 8, lines.append)
        for domain, arrays_ in found.items():
            assert list(arrays_.noted) == [UNREADABLE[domain]]
            for number in range(10):
                path = folder / "images" / domain / f"{number}.png"
                shown = 0 if number == UNREADABLE[domain] else np.asarray(Image.open(path))
                assert (arrays_.images[number] == shown).all()
        return sum(decodings), lines

    return go


@pytest.mark.parametrize("image", [0, 1, 6, 10, 19])
def test_what_was_cut_off_goes_on(folder, resume, image):
    interrupted_at(folder, image)
    decoded, lines = resume()
    assert decoded == 20 - image
    assert any("going on after" in line for line in lines) == (image > 0)
    assert not list((folder / "cache").glob(".folder-*"))
    assert resume()[0] == 0


def test_a_file_that_changed_meanwhile_begins_it_anew(folder, resume):
    interrupted_at(folder, 13)
    Image.new("RGB", (8, 8), "red").save(folder / "images" / "a" / "0.png")
    assert resume()[0] == 20


@pytest.mark.parametrize(
    ("mark", "again"), [(None, 7), ("{", 10), ("3", 10), ('[10, "a", "b"]', 10)]
)
def test_what_no_mark_promises_is_made_again(folder, resume, mark, again):
    interrupted_at(folder, 13)
    (cut_off,) = (folder / "cache").glob(".folder-*")
    with (cut_off / "images_1.npy").open("ab") as file:
        file.write(b"half a row")
    if mark is not None:
        (cut_off / f"images_1{arrays.MARK}").write_text(mark)
    assert resume()[0] == again


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is a POSIX signal")
def test_what_was_killed_is_not_taken_for_whole_and_goes_on_to_the_same_bytes(folder, resume):
    command = [sys.executable, "-c", KILLED, str(folder), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not list((folder / "cache").glob("folder-*/manifest.json"))
    assert resume()[0] == 7
    (resumed,) = (path for path in (folder / "cache").glob("folder-*") if path.is_dir())
    found = []
    for _ in range(2):
        manifest = json.loads((resumed / "manifest.json").read_text())
        arrays_ = {path.name: path.read_bytes() for path in resumed.glob("*.npy")}
        found.append((arrays_, {k: v["checksum"] for k, v in manifest["arrays"].items()}))
        (resumed / "manifest.json").unlink()
        resume()  # all at once
    assert found[0] == found[1]
