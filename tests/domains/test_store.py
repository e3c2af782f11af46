"""Prepared stores: made once, mapped by all, and made anew where there is none that is whole."""

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from robustmd.domains.domain_set import array_sha256
from robustmd.domains.store import Store, check_store, open_store
from robustmd.errors import UserError

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 4, 4, 3), dtype=np.uint8)
LABELS = np.arange(20) % 3


class Kitchen:
    """A store of two blocks, of 12 and 8 images; counts how often it is prepared."""

    def __init__(self, cache: Path) -> None:
        self.cache, self.built = cache, 0

    def build(self, notes):
        self.built += 1
        yield "one", LABELS[:12], [PIXELS[:7], PIXELS[7:12]]
        yield "two", LABELS[12:], self.noted(notes)

    def noted(self, notes):
        notes.append((13, "unreadable"))
        yield from PIXELS[12:]

    def open(self, content: object = "", build=None) -> Store:
        return open_store(
            self.cache, "tried", 4, [1], content, build or self.build, lambda line: None
        )

    @property
    def folder(self) -> Path:
        (folder,) = self.cache.glob("tried-*")
        return folder


@pytest.fixture
def kitchen(tmp_path):
    return Kitchen(tmp_path / "cache")


def is_whole(store: Store) -> None:
    assert np.array_equal(store.images, PIXELS)
    assert np.array_equal(store.labels, LABELS)
    assert store.rows["two"].tolist() == list(range(12, 20))
    assert store.sha256["two"] == (array_sha256(PIXELS[12:]), array_sha256(LABELS[12:]))
    assert store.notes == [(13, "unreadable")]


def test_prepared_once_then_mapped_and_replaced_where_the_files_are_others(kitchen):
    for store in (kitchen.open(), kitchen.open()):
        is_whole(store)
        assert not store.images.flags.writeable
    assert kitchen.built == 1
    before, path = kitchen.open(), kitchen.folder
    kitchen.open(content="changed")
    assert kitchen.built == 2
    assert kitchen.folder != path  # there is one, so the old one is gone
    is_whole(before)  # who had it open still has it


@pytest.mark.parametrize("name", ["images.npy", "labels.npy", "facts.json"])
@pytest.mark.parametrize("size", [0, 100])
def test_a_store_that_was_cut_is_prepared_again(kitchen, name, size):
    kitchen.open()
    path = kitchen.folder / name
    path.write_bytes(path.read_bytes()[:size])
    is_whole(kitchen.open())
    assert kitchen.built == 2


def test_a_check_finds_changed_pixels(kitchen):
    kitchen.open()
    check_store(kitchen.folder)
    path = kitchen.folder / "images.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with refused(str(kitchen.folder), "two is not what was prepared", "remove it"):
        check_store(kitchen.folder)


def test_a_failed_or_killed_preparation_leaves_nothing_that_could_be_taken_for_a_store(kitchen):
    def fails(notes):
        yield from list(kitchen.build(notes))[:1]
        raise UserError("no such image")

    with refused("no such image"):
        kitchen.open(build=fails)
    assert not [path for path in kitchen.cache.iterdir() if path.suffix != ".lock"]

    def killed(notes):
        yield "one", LABELS[:12], iter(lambda: os._exit(9), None)

    process = multiprocessing.get_context("fork").Process(target=kitchen.open, args=("", killed))
    process.start()
    process.join()
    assert process.exitcode == 9
    is_whole(kitchen.open())
    assert [*kitchen.cache.glob(".*.part")] == []


def test_a_cache_that_cannot_be_written_is_used_or_one_line(kitchen, tmp_path):
    kitchen.open()
    for folder in (kitchen.folder, kitchen.cache):
        folder.chmod(0o555)
    try:
        is_whole(kitchen.open())
    finally:
        for folder in (kitchen.cache, kitchen.folder):
            folder.chmod(0o755)
    kitchen.cache = tmp_path / "file"
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
