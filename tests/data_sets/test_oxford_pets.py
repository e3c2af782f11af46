"""Oxford-IIIT Pet: found, unpacked from its archives, or fetched; its lists read strictly."""

import hashlib
import shutil
from pathlib import Path

import pytest
from pet_photos import CHOSEN, FOUR, write_vgg
from refusals import refused

from robustmd.data_sets import pets
from robustmd.data_sets.pets import have_vgg, list_vgg
from robustmd.domains import published
from robustmd.domains.published import Origin


def silent(_: str) -> None:
    pass


@pytest.fixture
def archives(tmp_path: Path, monkeypatch) -> dict[str, Path]:
    """Small archives in place of the published ones, which have MATLAB files in them too."""
    made = tmp_path / "made"
    write_vgg(made, CHOSEN, 2, 1)
    (made / "images" / "Egyptian_Mau_14.mat").write_bytes(b"MATLAB")
    packed, known = {}, {}
    for part in ("images", "annotations"):
        name = f"{part}.tar.gz"
        packed[name] = Path(shutil.make_archive(tmp_path / part, "gztar", made, part))
        md5 = hashlib.md5(packed[name].read_bytes()).hexdigest()
        known[name] = Origin(name, (f"http://publisher.invalid/{name}",), md5)
    monkeypatch.setattr(pets, "origin", known.__getitem__)
    return packed


@pytest.fixture
def folder(archives, tmp_path: Path) -> Path:
    """A data folder's, with the archives in it."""
    found = tmp_path / "data" / "oxford-iiit-pet"
    found.mkdir(parents=True)
    for name, path in archives.items():
        shutil.copy(path, found / name)
    return found


def test_archives_that_lie_there_are_unpacked_once_whatever_a_cut_left(folder):
    left = folder / ".images.tar.gz.unpacked" / "images"
    left.mkdir(parents=True)
    (left / "chihuahua_1.jpg").write_bytes(b"half")
    lines: list[str] = []
    have_vgg(folder.parent, lines.append)
    assert len(lines) == 2
    assert (folder / "images" / "chihuahua_1.jpg").read_bytes() != b"half"
    assert not list(folder.glob(".*"))
    files, _ = list_vgg(folder.parent, FOUR)
    assert len(files) == 12
    have_vgg(folder.parent, pytest.fail)


def test_missing_archives_are_fetched(archives, tmp_path, monkeypatch):
    fetched = []

    def from_any_mirror(origin, folder, say):
        fetched.append(origin.name)
        folder.mkdir()
        return Path(shutil.copy(archives[origin.name], folder))

    monkeypatch.setattr(published, "_from_any_mirror", from_any_mirror)
    have_vgg(tmp_path / "data", silent)
    assert fetched == ["annotations.tar.gz", "images.tar.gz"]
    assert len(list_vgg(tmp_path / "data", FOUR)[0]) == 12


def test_an_archive_of_other_bytes_is_refused(folder):
    with (folder / "images.tar.gz").open("ab") as file:
        file.write(b"x")
    with refused("images.tar.gz", "not the published one"):
        have_vgg(folder.parent, silent)
    assert not (folder / "images").exists()


def test_what_cannot_be_had_is_named_with_its_place(tmp_path):
    place, site = str(tmp_path / "oxford-iiit-pet"), "robots.ox.ac.uk/~vgg/data/pets/data/"
    with refused("annotations.tar.gz", place, site, "no network"):
        have_vgg(tmp_path, silent)


@pytest.mark.parametrize(
    "line",
    [
        "../../etc/passwd_1 1 1 1",
        "chihuahua_1 5 2",
        "chihuahua 5 2 1",
        "chihuahua_1 5 3 1",
        "chihuahua_1.jpg 5 2 1",
        "chihuahua_1 5 2 1",  # in the list already
        "chihuahua_3 5 2 1",  # and in test.txt
    ],
)
def test_lists_are_read_strictly(tmp_path, line):
    write_vgg(tmp_path / "oxford-iiit-pet", CHOSEN, 2, 1)
    path = tmp_path / "oxford-iiit-pet" / "annotations" / "trainval.txt"
    rows = path.read_text().splitlines()
    path.write_text("\n".join(["# a remark", rows[0], line, *rows[1:], ""]))
    with refused(".txt, line", line.split()[0], "every name once"):
        list_vgg(tmp_path, FOUR)
