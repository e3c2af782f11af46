"""A preparation of images that is killed goes on where it was, and is never taken for whole."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robustmd.domains import prepared_images
from robustmd.domains.checksums import stamp_of
from robustmd.domains.listing import Listed, Listing
from robustmd.domains.prepared_images import prepare

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is a POSIX signal")

KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_resumed_preparation import listing_of
from robustmd.domains import arrays, prepared_images
arrays.MARK_SECONDS = 0.0
decoded, taken, last = prepared_images.decoded, 0, int(sys.argv[2])
def until_killed(paths, size):
    global taken
    for result in decoded(paths, size):
        if taken == last:
            os.kill(os.getpid(), signal.SIGKILL)
        taken += 1
        yield result
prepared_images.decoded = until_killed
folder = Path(sys.argv[1])
prepared_images.prepare(listing_of(folder / "images"), folder / "cache", 8, print)
"""


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
    (tmp_path / "images" / "a" / "3.png").write_bytes(b"no image")
    (tmp_path / "images" / "b" / "8.png").write_bytes(b"")
    return tmp_path


def kill_at(folder: Path, image: int) -> None:
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", KILLED, str(folder), str(image), here]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not list((folder / "cache").glob("folder-*/manifest.json"))


@pytest.fixture
def resume(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Prepare; returns what was prepared, how many images were decoded for it, what was said."""

    def go():
        asked: list[Path] = []
        decoded = prepared_images.decoded

        def counted(paths, size):
            asked.extend(paths)
            return decoded(paths, size)

        lines: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(prepared_images, "decoded", counted)
            found = prepare(listing_of(folder / "images"), folder / "cache", 8, lines.append)
        return found, len(asked), lines

    return go


def whole(found, folder: Path) -> None:
    """It is what the files show, and what could not be read is known."""
    unreadable = {"a": 3, "b": 8}
    for domain, arrays_ in found.items():
        assert list(arrays_.unreadable) == [unreadable[domain]]
        for number in range(10):
            path = folder / "images" / domain / f"{number}.png"
            shown = 0 if number == unreadable[domain] else np.asarray(Image.open(path))
            assert (arrays_.images[number] == shown).all()


@pytest.mark.parametrize("image", [0, 1, 6, 10, 13, 19])
def test_a_killed_preparation_goes_on(folder, resume, image) -> None:
    kill_at(folder, image)
    found, decoded, lines = resume()
    assert decoded == 20 - image
    whole(found, folder)
    assert any("going on after" in line for line in lines) == (image > 0)
    assert not list((folder / "cache").glob(".folder-*"))
    assert resume()[1] == 0


def test_a_file_that_changed_meanwhile_begins_it_anew(folder, resume) -> None:
    kill_at(folder, 13)
    Image.new("RGB", (8, 8), "red").save(folder / "images" / "a" / "0.png")
    found, decoded, _ = resume()
    assert decoded == 20
    whole(found, folder)


def test_what_was_resumed_is_byte_for_byte_what_is_made_at_once(folder, resume) -> None:
    kill_at(folder, 13)
    resume()
    (resumed,) = (path for path in (folder / "cache").glob("folder-*") if path.is_dir())
    bytes_resumed = {p.name: p.read_bytes() for p in resumed.glob("*.npy")}
    manifest = json.loads((resumed / "manifest.json").read_text())
    (resumed / "manifest.json").unlink()
    resume()
    assert {p.name: p.read_bytes() for p in resumed.glob("*.npy")} == bytes_resumed
    again = json.loads((resumed / "manifest.json").read_text())
    sums = [{k: v["checksum"] for k, v in m["arrays"].items()} for m in (manifest, again)]
    assert sums[0] == sums[1]
