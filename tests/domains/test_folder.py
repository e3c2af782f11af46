"""data=folder from folders: layouts, classes, splits, the store, and what is noted and refused."""

import os
import shutil
from pathlib import Path

import pytest
from PIL import Image
from refusals import refused

from robustmd.domains import DomainSet
from robustmd.domains.folder import load


def put(path: Path, gray: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 40), (gray,) * 3).save(path)


def grays(split) -> list[int]:
    """Every image of a split is of one gray: which, in order."""
    return split.images[:, 0, 0, 0].tolist()


class Own:
    """A folder of images and the lines that loading it prints."""

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
    assert (data.image_size, data.notes) == ((32, 32), ())
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
    put(own.root / "a" / "val" / "y" / "0.png", 99)
    data = own.load(test_share=0.3)
    assert sorted(grays(data["a"].train)) == list(range(12))
    assert sorted(grays(data["a"].test)) == [12, 13, 14]
    assert grays(data["a"].val) == [99]
    assert (len(data["b"].train), len(data["b"].test)) == (14, 6)


def test_a_class_or_a_domain_may_be_called_as_a_split_is(own):
    own.fill({name: {"train": 5, "plane": 5} for name in ("train", "plane")})
    data = own.load()
    assert (data.names, data.classes) == (("plane", "train"),) * 2


def test_names_are_spelt_in_one_way(own):
    nfc, nfd = "caf\u00e9", "cafe\u0301"
    own.fill({"a": {"x": 2, "y": 2}, nfd: {"x": 2, nfc: 2}})
    assert (own.load().names, own.load().classes) == (("a", nfc), (nfc, "x", "y"))


def test_a_second_start_decodes_nothing_and_a_change_is_noticed(own):
    own.fill({name: {"x": 5, "y": 5} for name in "ab"})
    first = own.load()
    other_split = own.load(test_share=0.5, split_seed=3)  # the split is no matter of the store
    assert own.lines == []
    assert first.fingerprint == own.load().fingerprint != other_split.fingerprint
    shutil.copytree(own.root, own.root.with_name("copy"))
    copy = load(own.cache, root=own.root.with_name("copy"))
    assert copy.fingerprint == first.fingerprint
    put(own.root / "a" / "x" / "new.png", 250)
    grown = own.load()
    assert "preparing folder" in own.lines[0]
    assert len([*own.cache.glob("folder-*")]) == 2  # in place of the old one
    shutil.move(own.root / "b" / "x" / "00.png", own.root / "b" / "y" / "moved.png")
    assert len({first.fingerprint, grown.fingerprint, own.load().fingerprint}) == 3


def test_bytes_swapped_with_their_times_kept_are_read_again(own):
    own.fill({name: {"x": 5, "y": 5} for name in "ab"})
    x, y = own.root / "a/x/00.png", own.root / "a/y/00.png"
    put(x, 30)
    put(y, 31)
    for path in (x, y):
        os.utime(path, ns=(10**18, 10**18))
    first = own.load()
    swapped = {x: y.read_bytes(), y: x.read_bytes()}
    for path, content in swapped.items():
        path.write_bytes(content)
        os.utime(path, ns=(10**18, 10**18))
    assert own.load().fingerprint != first.fingerprint


def test_unreadable_images_are_refused_with_the_first_ten_and_a_count(own):
    own.fill({name: {"x": 15, "y": 15} for name in "ab"})
    for number in range(12):
        (own.root / "a" / "x" / f"{number:02}.png").write_bytes(b"")
    words = "12 of 60 images", "a/x/00.png (no image of a known format)", "(12 in all)"
    with refused(*words, "data.skip_unreadable=true") as error:
        own.load()
    assert str(error.value).count("known format") == 10
    data = own.load(skip_unreadable=True)
    assert len(data["a"].train) + len(data["a"].test) == 18
    assert min(grays(data["a"].train) + grays(data["a"].test)) == 12
    assert data.notes[0].startswith("12 unreadable and left out: a/x/00.png (no image")


@pytest.mark.parametrize("parts", [["a/train", "a/test"], ["a"]])
def test_a_domain_of_which_nothing_can_be_read_is_named(own, parts):
    own.fill({name: {"x": 2} for name in (*parts, "b")})
    for path in (own.root / "a").rglob("*.png"):
        path.write_bytes(b"no")
    with refused("domain a", "read"):
        own.load(skip_unreadable=True)


def test_absent_classes_and_what_is_passed_over_are_noted(own):
    own.fill({"a": {"x": 5, "y": 5}, "b": {"y": 5, "z": 5}})
    (own.root / "README.md").write_text("mine")
    (own.root / "a" / "x" / "notes.txt").write_text("no image by its name")
    put(own.root / "a" / "x" / "deep" / "lost.png")
    put(own.root / ".hidden" / "x" / "0.png")
    data = own.load()
    assert data.classes == ("x", "y", "z")
    passed, lacking = data.notes
    assert passed.startswith("3 passed over")
    assert all(name in passed for name in ("README.md", "a/x/notes.txt", "a/x/deep/lost.png"))
    assert lacking == "domains without all of the 3 classes: a (z), b (x)"
    assert own.lines[1:] == [passed, lacking]


def test_links_are_followed_and_what_leads_nowhere_or_is_empty_is_refused(own):
    own.fill({name: {"x": 2, "y": 2} for name in ("a", "b", "elsewhere")})
    (own.root / "elsewhere").rename(own.root.parent / "elsewhere")
    (own.root / "c").symlink_to(own.root.parent / "elsewhere")
    (own.root / "a" / "x" / "up").symlink_to("..")
    assert own.load().names == ("a", "b", "c")
    (own.root / "gone").symlink_to("nowhere")
    (own.root / "a" / "loop").symlink_to("loop")
    assert own.load().notes[0].startswith("3 passed over")
    (own.root / "b2" / "empty").mkdir(parents=True)
    with refused("1 folder(s) without an image: b2"):
        own.load()


@pytest.mark.parametrize(
    ("domains", "words"),
    [
        ({}, ("none", "at least two")),
        ({"a": {"x": 2}}, ("(a)", "at least two")),
        ({"train": {"x": 2}, "test": {"x": 2}}, ("holds test, train", "domains come first")),
        ({name: {"x": 2} for name in ("Train", "valid", "more")}, ("Train, valid", "come first")),
        ({"a/train": {"x": 2}, "b": {"x": 2}}, ("domain a", "in its test split")),
        ({"a": {"x": 2}, "b": {"x\x01": 2}}, (r"class x\x01 must be",)),
        ({"a": {"x": 2}, os.fsdecode(b"dom\xe9"): {"x": 2}}, ("printable characters",)),
    ],
)
def test_other_layouts_and_names_are_refused(own, domains, words):
    own.root.mkdir()
    own.fill(domains)
    with refused(*words):
        own.load()


def test_exactly_one_of_root_and_manifest(tmp_path):
    with refused("data.root", "data.manifest"):
        load(tmp_path)
    with refused("data.root", "data.manifest", "one of the two"):
        load(tmp_path, root=tmp_path, manifest=tmp_path / "m.csv")
    with refused("data.group_by=", "data.manifest=FILE"):
        load(tmp_path, root=tmp_path, group_by=["label"])
    with refused("nowhere", "no such folder"):
        load(tmp_path, root=tmp_path / "nowhere")
