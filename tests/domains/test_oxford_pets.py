"""Oxford-IIIT Pet: found, unpacked from its archives, or fetched; its lists read strictly."""

import hashlib
import tarfile
from pathlib import Path

import pytest
from pet_photos import FOUR, write_vgg
from robustmd.domains.breeds import chosen_breeds
from robustmd.domains.oxford_pets import have_vgg, list_vgg

from robustmd.domains import oxford_pets
from robustmd.domains.fetch import FetchError, Origin
from robustmd.errors import UserError

CHOSEN = chosen_breeds(FOUR)


@pytest.fixture
def archives(tmp_path: Path, monkeypatch) -> dict[str, Path]:
    """Small archives in place of the published ones, as these are packed: with more in them."""
    made = tmp_path / "made"
    write_vgg(made, CHOSEN, 2, 1)
    (made / "images" / "Egyptian_Mau_14.mat").write_bytes(b"MATLAB")
    (made / "annotations" / "trimaps").mkdir()
    (made / "annotations" / "trimaps" / "pug_1.png").write_bytes(b"map")
    (made / "annotations" / "._list.txt").write_bytes(b"AppleDouble")
    packed, known = {}, {}
    for name in ("images.tar.gz", "annotations.tar.gz"):
        folder, path = name.partition(".")[0], tmp_path / name
        with tarfile.open(path, "w:gz") as tar:
            tar.add(made / folder, folder)
            link = tarfile.TarInfo(f"{folder}/link_1.jpg")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(link)
        md5 = hashlib.md5(path.read_bytes()).hexdigest()
        known[name] = Origin(name, (f"http://publisher.invalid/{name}",), md5)
        packed[name] = path
    monkeypatch.setattr(oxford_pets, "origin", known.__getitem__)
    return packed


def names_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def put(archives: dict[str, Path], folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, path in archives.items():
        (folder / name).write_bytes(path.read_bytes())


def test_archives_that_lie_there_are_unpacked_once(archives, tmp_path) -> None:
    folder = tmp_path / "data" / "oxford-iiit-pet"
    put(archives, folder)
    lines: list[str] = []
    have_vgg(tmp_path / "data", fetch=False, say=lines.append)
    assert len(lines) == 2
    found = names_in(folder)
    assert {"annotations/test.txt", "images/chihuahua_1.jpg", "images/Persian_3.jpg"} <= found
    assert not any(part in name for name in found for part in ("trimaps", ".mat", "._", "link"))
    assert not list(folder.glob(".*"))
    files, _ = list_vgg(tmp_path / "data", CHOSEN)
    assert len(files) == 12
    have_vgg(tmp_path / "data", fetch=False, say=pytest.fail)


def test_missing_archives_are_fetched(archives, tmp_path, monkeypatch) -> None:
    fetched = []

    def fetch(origin, folder, say):
        fetched.append(origin.name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / origin.name).write_bytes(archives[origin.name].read_bytes())
        return folder / origin.name

    monkeypatch.setattr(oxford_pets, "fetch_file", fetch)
    have_vgg(tmp_path / "data", fetch=True, say=lambda line: None)
    assert fetched == ["annotations.tar.gz", "images.tar.gz"]
    assert len(list_vgg(tmp_path / "data", CHOSEN)[0]) == 12


def test_an_unpacking_that_was_cut_off_is_done_again(archives, tmp_path) -> None:
    folder = tmp_path / "data" / "oxford-iiit-pet"
    put(archives, folder)
    left = folder / ".images.tar.gz.unpacked" / "images"
    left.mkdir(parents=True)
    (left / "chihuahua_1.jpg").write_bytes(b"half")
    have_vgg(tmp_path / "data", fetch=False, say=lambda line: None)
    assert (folder / "images" / "chihuahua_1.jpg").read_bytes() != b"half"
    assert not list(folder.glob(".*"))


def test_an_archive_of_other_bytes_is_refused(archives, tmp_path, one_line) -> None:
    folder = tmp_path / "data" / "oxford-iiit-pet"
    put(archives, folder)
    (folder / "images.tar.gz").write_bytes(archives["images.tar.gz"].read_bytes()[:-1] + b"x")
    with pytest.raises(UserError) as error:
        have_vgg(tmp_path / "data", fetch=False, say=lambda line: None)
    one_line(error, "images.tar.gz", "not the published one")
    assert not (folder / "images").exists()


def test_what_cannot_be_had_is_named_with_its_place(tmp_path, monkeypatch, one_line) -> None:
    def fails(*_):
        raise FetchError("no network")

    monkeypatch.setattr(oxford_pets, "fetch_file", fails)
    for fetch, why in ((True, "no network"), (False, "switched off")):
        (tmp_path / "oxford-iiit-pet").mkdir(exist_ok=True)
        with pytest.raises(UserError) as error:
            have_vgg(tmp_path, fetch=fetch, say=lambda line: None)
        place = str(tmp_path / "oxford-iiit-pet")
        one_line(error, "annotations.tar.gz", place, "robots.ox.ac.uk/~vgg/data/pets/data/", why)


@pytest.mark.parametrize(
    "line",
    [
        "../../etc/passwd_1 1 1 1",
        "chihuahua_1 5 2",
        "chihuahua 5 2 1",
        "chihuahua_1 5 3 1",
        "chihuahua_1.jpg 5 2 1",
    ],
)
def test_lists_are_read_strictly(tmp_path, line, one_line) -> None:
    write_vgg(tmp_path / "oxford-iiit-pet", CHOSEN, 2, 1)
    path = tmp_path / "oxford-iiit-pet" / "annotations" / "trainval.txt"
    rows = path.read_text().splitlines()
    path.write_text("\n".join(["# a remark", rows[0], line, *rows[1:], ""]))
    with pytest.raises(UserError) as error:
        list_vgg(tmp_path, CHOSEN)
    one_line(error, "trainval.txt, line 3", line)


def test_an_image_is_in_one_list_once(tmp_path, one_line) -> None:
    write_vgg(tmp_path / "oxford-iiit-pet", CHOSEN, 2, 1)
    folder = tmp_path / "oxford-iiit-pet" / "annotations"
    line = (folder / "trainval.txt").read_text().splitlines()[0]
    for name, words in (("test.txt", "and in test.txt"), ("trainval.txt", "every name once")):
        before = (folder / name).read_text()
        (folder / name).write_text(f"{before}{line}\n")
        with pytest.raises(UserError) as error:
            list_vgg(tmp_path, CHOSEN)
        one_line(error, line.split()[0], words)
        (folder / name).write_text(before)
