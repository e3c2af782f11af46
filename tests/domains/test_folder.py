"""data=folder from folders: layouts, classes, splits, the store, and what is said and refused."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import refused

from robustmd.domains import DomainSet, folder
from robustmd.domains.folder import load


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files were decoded, one entry for each preparation of a domain."""
    counts: list[int] = []
    decode_all = folder.decode_all

    def counting(paths, size):
        counts.append(len(paths))
        return decode_all(paths, size)

    monkeypatch.setattr(folder, "decode_all", counting)
    return counts


def put(path: Path, gray: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 40), (gray,) * 3).save(path)


def grays(examples) -> list[int]:
    """Every image of a split is of one gray: which, in order."""
    return examples.images[:, 0, 0, 0].tolist()


class Own:
    """A folder of images and what loading it says."""

    def __init__(self, folder: Path) -> None:
        self.root, self.cache = folder / "own", folder / "cache"
        self.lines: list[str] = []

    def fill(self, domains: dict[str, dict[str, int]]) -> None:
        """domain → class → how many images, each of a gray of its own."""
        gray = 0
        for domain, classes in domains.items():
            for label, count in classes.items():
                for number in range(count):
                    put(self.root / domain / label / f"{number:02}.png", gray)
                    gray += 1

    def load(self, **settings) -> DomainSet:
        self.lines.clear()
        return load(self.cache, root=self.root, say=self.lines.append, **settings)


@pytest.fixture
def own(tmp_path: Path) -> Own:
    return Own(tmp_path)


def test_domains_and_classes_are_sorted_and_every_image_has_its_label(own):
    own.fill({"sketch": {"dog": 5, "cat": 5}, "photo": {"cat": 5, "dog": 5}})
    data = own.load()
    assert (data.name, data.names, data.classes) == ("folder", ("photo", "sketch"), ("cat", "dog"))
    assert data.image_size == (32, 32)
    assert data.notes == ()
    labels = {}
    for domain in data:
        assert (len(domain.train), len(domain.test)) == (8, 2)
        for split in (domain.train, domain.test):
            labels.update(zip(grays(split), split.targets.tolist(), strict=True))
    assert labels == {
        **dict.fromkeys(range(5), 1),  # sketch/dog was filled first
        **dict.fromkeys(range(5, 15), 0),
        **dict.fromkeys(range(15, 20), 1),
    }


def test_given_splits_are_kept_and_a_domain_without_is_split(own):
    own.fill({"a/train": {"x": 6, "y": 6}, "a/test": {"x": 2, "y": 1}, "b": {"x": 10, "y": 10}})
    data = own.load(test_share=0.3)
    assert sorted(grays(data["a"].train)) == list(range(12))
    assert sorted(grays(data["a"].test)) == [12, 13, 14]
    assert (len(data["b"].train), len(data["b"].test)) == (14, 6)
    put(own.root / "a" / "val" / "y" / "0.png", 99)
    validation = own.load()["a"].val
    assert validation is not None
    assert (grays(validation), validation.targets.tolist()) == ([99], [1])


def test_a_class_or_a_domain_may_be_called_as_a_split_is(own):
    own.fill({name: {"train": 5, "plane": 5} for name in ("train", "plane")})
    data = own.load()
    assert (data.names, data.classes) == (("plane", "train"),) * 2


@pytest.mark.parametrize("place", ["gone", "a/gone", "c/train/gone"])
def test_links_to_no_domain_or_class_are_refused_and_counted_once(own, place):
    own.fill({name: {"x": 2, "y": 2} for name in ("a", "b", "c/train", "c/test")})
    (own.root / place).symlink_to("nowhere")
    with refused(f"1 link(s) lead nowhere, where a domain or class may be meant: {place};"):
        own.load()


def test_12_bits_stored_in_16_are_noted(own, png_16, decodings):
    own.fill({name: {"x": 2, "y": 2} for name in "ab"})
    (own.root / "b" / "y" / "scan.png").write_bytes(png_16(np.full((9, 9), 4000, np.uint16)))
    for _ in range(2):
        (note,) = own.load().notes
        assert note.startswith("1 of 16 bits")
        assert "b/y/scan.png" in note
    assert decodings == [4, 5]  # the second time it is known


def test_a_domain_may_lack_classes_and_that_is_said(own):
    own.fill({"a": {"x": 5, "y": 5}, "b": {"y": 5, "z": 5}})
    data = own.load()
    assert data.classes == ("x", "y", "z")
    assert data.notes == (
        "domain a lacks 1 of 3 classes: z",
        "domain b lacks 1 of 3 classes: x",
    )
    assert set(data.notes) <= set(own.lines)


def test_a_second_start_decodes_nothing(own, decodings):
    own.fill({name: {"x": 5, "y": 5} for name in "ab"})
    first = own.load()
    again = own.load(test_share=0.5, split_seed=3)  # the split is no matter of the store
    assert decodings == [10, 10]
    assert own.lines == []
    assert first.fingerprint == own.load().fingerprint != again.fingerprint


def test_a_changed_listing_is_decoded_again_with_a_line(own, decodings):
    own.fill({name: {"x": 5, "y": 5} for name in "ab"})
    first = own.load()
    put(own.root / "a" / "x" / "new.png", 250)
    grown = own.load()
    assert any("preparing folder" in line for line in own.lines)
    assert len([*own.cache.glob("folder-*")]) == 1  # in place of the old one
    assert len(grown["a"].train) + len(grown["a"].test) == 11
    os.utime(own.root / "a" / "x" / "new.png", ns=(1, 1))
    assert own.load().fingerprint == grown.fingerprint  # the same pixels
    shutil.move(own.root / "b" / "x" / "00.png", own.root / "b" / "y" / "moved.png")
    moved = own.load()
    assert len({first.fingerprint, grown.fingerprint, moved.fingerprint}) == 3
    assert len(decodings) == 8


def test_bytes_swapped_with_their_times_kept_are_read_again(own):
    for domain, label, gray in [("a", "cat", 1), ("a", "dog", 2), ("b", "cat", 3), ("b", "dog", 4)]:
        for number in range(5):
            path = own.root / domain / label / f"{number}.bmp"
            put(path, 10 * gray + number)
            os.utime(path, ns=(10**18, 10**18))
    first = own.load()
    cat, dog = own.root / "a/cat/0.bmp", own.root / "a/dog/0.bmp"
    swapped = {cat: dog.read_bytes(), dog: cat.read_bytes()}
    for path, content in swapped.items():
        path.write_bytes(content)
        os.utime(path, ns=(10**18, 10**18))
    assert own.load().fingerprint != first.fingerprint


def test_a_file_that_changes_while_it_is_read_stops_the_preparation(own, monkeypatch):
    own.fill({name: {"x": 2, "y": 2} for name in "ab"})
    decode_all = folder.decode_all

    def meddling(paths, size):
        put(paths[1], 77)
        os.utime(paths[1], ns=(5, 5))
        return decode_all(paths, size)

    monkeypatch.setattr(folder, "decode_all", meddling)
    with refused("01.png changed while it was read"):
        own.load()


def test_unreadable_images_are_refused_with_the_first_ten_and_a_count(own, decodings):
    own.fill({name: {"x": 15, "y": 15} for name in "ab"})
    for number in range(12):
        (own.root / "a" / "x" / f"{number:02}.png").write_bytes(b"")
    for _ in range(2):  # the reasons are kept: the second time nothing is decoded
        words = "12 of 60 images", "a/x/00.png (empty, zero bytes)", "(12 in all)"
        with refused(*words, "data.skip_unreadable=true") as error:
            own.load()
        assert str(error.value).count("zero bytes") == 10
    data = own.load(skip_unreadable=True)
    assert decodings == [30, 30]
    assert len(data["a"].train) + len(data["a"].test) == 18
    assert min(grays(data["a"].train) + grays(data["a"].test)) == 12
    assert data.notes[0].startswith("12 unreadable and left out: a/x/00.png (empty, zero bytes)")


@pytest.mark.parametrize("given", [True, False])
def test_a_domain_of_which_nothing_can_be_read_is_named(own, given):
    own.fill({"a/train": {"x": 2}, "a/test": {"x": 2}} if given else {"a": {"x": 2}})
    own.fill({"b": {"x": 2}})
    for path in (own.root / "a").rglob("*.png"):
        path.write_bytes(b"no")
    with refused("domain a", "read"):
        own.load(skip_unreadable=True)


@pytest.mark.parametrize(
    ("domains", "words"),
    [
        ({}, ("none", "at least two")),
        ({"a": {"x": 2}}, ("(a)", "at least two")),
        ({"train": {"x": 2}, "test": {"x": 2}}, ("holds test, train", "domains come first")),
        ({name: {"x": 2} for name in ("train", "valid", "test")}, ("valid", "domains come first")),
        (
            {name: {"x": 2} for name in ("Train", "dev", "more")},
            ("Train, dev", "domains come first"),
        ),
        ({"a/train": {"x": 2}, "b": {"x": 2}}, ("domain a", "no test")),
    ],
)
def test_other_layouts_are_refused(own, domains, words):
    own.root.mkdir()
    own.fill(domains)
    with refused(str(own.root), *words):
        own.load()


def test_empty_domains_classes_and_splits_are_all_named(own):
    own.fill({"a": {"x": 2}, "b": {"x": 2}, "c/train": {"x": 2}})
    for path in ("a/empty", "lone", "c/test"):
        (own.root / path).mkdir(parents=True)
    with refused("3 folder(s) without an image", "a/empty", "lone", "c/test"):
        own.load()


def test_exactly_one_of_root_and_manifest(tmp_path):
    with refused("data.root", "data.manifest"):
        load(tmp_path)
    with refused("data.root", "data.manifest", "one of the two"):
        load(tmp_path, root=tmp_path, manifest=tmp_path / "m.csv")
    with refused("data.group_by=[label]", "data.manifest=FILE"):
        load(tmp_path, root=tmp_path, group_by=["label"])
    with refused("nowhere", "no such folder"):
        load(tmp_path, root=tmp_path / "nowhere")


def test_the_same_folder_has_the_same_fingerprint_anywhere(own, tmp_path):
    own.fill({name: {"x": 5, "y": 5} for name in "ab"})
    copy = tmp_path / "elsewhere"
    shutil.copytree(own.root, copy)
    assert load(own.cache, root=copy).fingerprint == own.load().fingerprint


def test_names_are_spelt_in_one_way(own):
    nfc, nfd = "caf\u00e9", "cafe\u0301"
    own.fill({"a": {"x": 2, "y": 2}, nfd: {"x": 2, nfc: 2}})
    assert (own.load().names, own.load().classes) == (("a", nfc), (nfc, "x", "y"))
