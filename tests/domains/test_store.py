"""Prepared stores: made once, mapped by all, made anew where they are not as they were written."""

import json
import multiprocessing
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from robustmd.domains.domain_set import array_sha256
from robustmd.domains.store import Images, Store, open_store, read_through
from robustmd.errors import UserError

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 4, 4, 3), dtype=np.uint8)
LABELS = np.arange(20) % 3


class Kitchen:
    """A store of two blocks, of 12 and 8 images; counts how often it is prepared."""

    def __init__(self, cache: Path) -> None:
        self.cache, self.built = cache, 0
        self.lines: list[str] = []

    def build(self, notes):
        self.built += 1
        yield Images(LABELS[:12], [PIXELS[:7], PIXELS[7:12]])
        yield Images(LABELS[12:], self.noted(notes))

    def noted(self, notes):
        notes.append((13, "unreadable"))
        yield PIXELS[12:]

    def open(self, content: object = "", build=None) -> Store:
        say, names = self.lines.append, ("one", "two")
        return open_store(self.cache, "tried", [1], content, names, build or self.build, say)

    @property
    def folder(self) -> Path:
        (folder,) = self.cache.glob("tried-*")
        return folder


@pytest.fixture
def kitchen(tmp_path):
    return Kitchen(tmp_path / "cache")


def test_prepared_once_then_mapped(kitchen):
    for store in (kitchen.open(), kitchen.open()):
        assert np.array_equal(store.images, PIXELS)
        assert np.array_equal(store.labels, LABELS)
        assert not store.images.flags.writeable
        assert type(store.images) is np.ndarray
        assert store.blocks["two"].rows().tolist() == list(range(12, 20))
        assert store.blocks["two"].images == array_sha256(PIXELS[12:])
        assert store.blocks["two"].labels == array_sha256(LABELS[12:])
        assert store.notes == [(13, "unreadable")]
    assert kitchen.built == 1
    assert len(kitchen.lines) == 1
    files = {path.name for path in kitchen.folder.iterdir()}
    assert files == {"images.npy", "labels.npy", "facts.json"}


def test_other_files_make_another_store_in_its_place(kitchen):
    before, path = kitchen.open(), kitchen.folder
    kitchen.open(content="changed")
    assert kitchen.built == 2
    assert kitchen.folder != path  # there is one, so the old one is gone
    assert np.array_equal(before.images, PIXELS)  # who had it open still has it


def test_a_cache_that_may_only_be_read_is_used(kitchen):
    kitchen.open()
    folders = [kitchen.cache, kitchen.folder]
    os.utime(kitchen.folder / "images.npy", ns=(1, 1))  # whose stamp can then not be written
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert np.array_equal(kitchen.open().images, PIXELS)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert kitchen.built == 1


def test_a_copied_store_is_read_once_and_then_known_by_its_stamps(kitchen, monkeypatch):
    kitchen.open()
    moved = kitchen.folder.with_name("elsewhere")
    shutil.copytree(kitchen.folder, moved)
    shutil.rmtree(kitchen.folder)
    moved.rename(moved.with_name(kitchen_name(kitchen)))
    sums = []
    real = array_sha256
    monkeypatch.setattr(
        "robustmd.domains.store.array_sha256", lambda array: sums.append(1) or real(array)
    )
    kitchen.open()
    assert len(sums) == 4  # images and labels of both blocks
    kitchen.open()
    assert (len(sums), kitchen.built) == (4, 1)


def kitchen_name(kitchen: Kitchen) -> str:
    """What its store is called."""
    other = Kitchen(kitchen.cache.with_name("other"))
    other.open()
    return other.folder.name


def test_pixels_changed_under_the_same_size_and_time_are_noticed(kitchen):
    kitchen.open()
    path = kitchen.folder / "images.npy"
    times, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert np.array_equal(kitchen.open().images, PIXELS)
    assert kitchen.built == 2
    assert "is damaged (two is not what was prepared); preparing tried" in kitchen.lines[-1]


def test_read_through_finds_what_stamps_do_not(kitchen):
    kitchen.open()
    read_through(kitchen.folder)
    path = kitchen.folder / "facts.json"
    (kitchen.folder / "labels.npy").write_bytes(b"")
    with refused(str(kitchen.folder), "remove it to have it prepared again"):
        read_through(kitchen.folder)
    path.unlink()
    with refused("is damaged"):
        read_through(kitchen.folder)


@settings(max_examples=60)
@given(
    st.sampled_from(["images.npy", "labels.npy", "facts.json"]),
    st.one_of(
        st.binary(max_size=300),
        st.tuples(st.integers(0, 10**4), st.binary(min_size=1, max_size=20)),
        st.integers(0, 1000),
    ),
)
def test_any_bytes_in_a_store_give_the_same_store_again(name, damage):
    """Another content, some bytes changed, or the file cut."""
    with TemporaryDirectory() as folder:
        kitchen = Kitchen(Path(folder, "cache"))
        kitchen.open()
        path = kitchen.folder / name
        whole = path.read_bytes()
        if isinstance(damage, tuple):
            place = damage[0] % len(whole)
            damage = whole[:place] + damage[1] + whole[place + len(damage[1]) :]
        path.write_bytes(whole[:damage] if isinstance(damage, int) else damage)
        store = kitchen.open()
        assert np.array_equal(store.images, PIXELS)
        assert np.array_equal(store.labels, LABELS)
        assert store.notes == [(13, "unreadable")]


@pytest.mark.parametrize("place", ["", "images.npy", "facts.json"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_links_and_pipes_in_its_place_are_removed_and_nothing_else(kitchen, tmp_path, place, kind):
    kitchen.open()
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "mine").write_text("mine")
    path = kitchen.folder / place
    shutil.rmtree(path) if place == "" else path.unlink()
    make = {
        "link": lambda: path.symlink_to(victim),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    make[kind]()
    assert np.array_equal(kitchen.open().images, PIXELS)
    assert [*victim.iterdir()] == [victim / "mine"]
    assert kitchen.built == 2


def test_a_lock_that_is_a_link_harms_nobody(kitchen, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    kitchen.open()
    (lock,) = kitchen.cache.glob(".*.lock")
    lock.unlink()
    shutil.rmtree(kitchen.folder)
    lock.symlink_to(victim)
    with pytest.raises(UserError, match="cannot keep the prepared tried data"):
        kitchen.open()
    assert victim.read_text() == "mine"


def test_a_failed_preparation_leaves_nothing_that_could_be_taken_for_a_store(kitchen):
    def fails(notes):
        yield from list(kitchen.build(notes))[:1]
        raise UserError("no such image")

    with refused("no such image"):
        kitchen.open(build=fails)
    assert not [path for path in kitchen.cache.iterdir() if path.suffix != ".lock"]
    kitchen.open()


def test_a_cache_that_cannot_be_written_is_one_line(kitchen):
    kitchen.cache.write_text("a file")
    with refused("cannot keep the prepared tried data", str(kitchen.cache), "paths.cache=DIR"):
        kitchen.open()


def _open(cache: Path, queue) -> None:
    kitchen = Kitchen(cache)
    kitchen.open()
    queue.put(kitchen.built)


def test_of_several_processes_one_prepares(tmp_path):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    processes = [context.Process(target=_open, args=(tmp_path, queue)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert sum(queue.get() for _ in processes) == 1


def test_facts_are_json_below_their_checksum(kitchen):
    kitchen.open()
    _, _, text = (kitchen.folder / "facts.json").read_text().partition("\n")
    assert set(json.loads(text)) == {"blocks", "notes", "stamps"}
