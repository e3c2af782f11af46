"""Prepared stores: made once, recognised, rebuilt when stale or damaged, never taken half-made,
also by several processes at once."""

import errno
import hashlib
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from robustmd.domains import store as store_module
from robustmd.domains.checksums import array_sha256, content_md5
from robustmd.domains.store import Recipe, find_store, open_store, read_through
from robustmd.errors import UserError

MD5 = hashlib.md5(bytes(range(100))).hexdigest()


class Kitchen:
    """A store of one array made from one source file; counts the preparations and the hashing."""

    def __init__(self, folder):
        self.cache = folder / "cache"
        self.source = folder / "source.bin"
        self.source.write_bytes(bytes(range(100)))
        self.lines, self.built, self.hashed = [], 0, 0

    def recipe(self, **changes):
        sources = {"source.bin": self.source}
        return replace(Recipe("tried", {"size": 5}, self.build, sources), **changes)

    def md5(self, path):
        self.hashed += 1
        return content_md5(path)

    def build(self, writer):
        self.built += 1
        values = np.frombuffer(self.source.read_bytes(), np.uint8).reshape(-1, 5)
        writer.add_rows("values", values.shape, lambda row: [values[:7], values[7:]])
        writer.add("labels", np.array([3, 4]))

    def open(self, **changes):
        return open_store(self.cache, self.recipe(**changes), self.lines.append)

    @property
    def folder(self):
        return self.cache / self.recipe().key


@pytest.fixture
def kitchen(tmp_path, monkeypatch):
    made = Kitchen(tmp_path)
    monkeypatch.setattr(store_module, "content_md5", made.md5)
    return made


def test_prepared_once_then_mapped_without_hashing(kitchen):
    first, second = kitchen.open(), kitchen.open()
    assert (kitchen.built, kitchen.hashed) == (1, 1)
    assert len(kitchen.lines) == 1
    assert "preparing tried" in kitchen.lines[0]
    for store in (first, second):
        values = store.arrays["values"]
        assert np.array_equal(values, np.arange(100, dtype=np.uint8).reshape(20, 5))
        assert not values.flags.writeable
        assert type(values) is np.ndarray
        assert store.arrays["labels"].dtype == np.int64
        assert store.md5s == {"source.bin": MD5}
    assert first.checksums == second.checksums
    names = sorted(path.name for path in kitchen.cache.iterdir())
    assert names == [kitchen.folder.name, f"{kitchen.folder.name}.lock"]
    files = {path.name for path in kitchen.folder.iterdir()}
    assert files == {"manifest.json", "values.npy", "labels.npy"}


def test_changed_source_is_prepared_again_with_a_line(kitchen):
    before = kitchen.open()
    kitchen.source.write_bytes(bytes(50))
    after = kitchen.open()
    assert len(after.arrays["values"]) == 10
    assert before.checksums != after.checksums
    assert "out of date" in kitchen.lines[-1]
    assert str(kitchen.source) in kitchen.lines[-1]
    assert before.arrays["values"][19, 4] == 99  # who had it open still has it


def test_source_whose_bytes_changed_with_its_time_kept_is_prepared_again(kitchen):
    before = kitchen.open()
    with time_kept(kitchen.source):
        kitchen.source.write_bytes(bytes(range(100))[::-1])
    assert kitchen.open().checksums["values"] != before.checksums["values"]
    assert "out of date" in kitchen.lines[-1]


def test_touched_source_is_recognised_by_md5_and_then_by_time(kitchen):
    kitchen.open()
    os.utime(kitchen.source, ns=(1, 1))
    kitchen.open()
    kitchen.open()
    assert (kitchen.built, kitchen.hashed) == (1, 2)


@contextmanager
def time_kept(path):
    before = path.stat()
    yield
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def flipped(folder):
    path = folder / "values.npy"
    content = path.read_bytes()
    with time_kept(path):
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def pickled(folder):
    np.save(folder / "values.npy", np.array([{}], object), allow_pickle=True)


def leading_out(folder):
    (folder / "values.npy").rename(folder.parent.parent / "outside.npy")
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.replace('"values"', '"../../outside"'))


def with_manifest(text):
    return lambda folder: (folder / "manifest.json").write_text(text)


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        pickled,
        leading_out,
        lambda folder: os.truncate(folder / "values.npy", 150),
        lambda folder: os.truncate(folder / "values.npy", 0),
        lambda folder: (folder / "labels.npy").unlink(),
        lambda folder: (folder / "manifest.json").unlink(),
        *map(with_manifest, ("", "[]", "{}", "[" * 100_000, '{"sources": {}, "arrays": {}}')),
    ],
)
def test_damaged_store_is_prepared_again_with_a_line(kitchen, damage):
    whole = kitchen.open()
    expected = {name: array.copy() for name, array in whole.arrays.items()}
    checksums = whole.checksums
    del whole
    damage(kitchen.folder)
    store = kitchen.open()
    assert kitchen.built == 2
    assert "is damaged" in kitchen.lines[-1]
    assert len(kitchen.lines[-1].splitlines()) == 1
    assert store.checksums == checksums
    for name, values in expected.items():
        assert np.array_equal(store.arrays[name], values)


def test_reading_through_finds_what_no_stamp_shows(kitchen):
    kitchen.open()
    read_through(kitchen.folder)
    flipped(kitchen.folder)
    with refused(str(kitchen.folder), "values.npy", "remove it"):
        read_through(kitchen.folder)


@pytest.mark.skipif(os.name == "nt", reason="no such permissions")
def test_a_group_shares_a_cache_whatever_the_umask(tmp_path):
    tmp_path.chmod(0o2775)
    before = os.umask(0o022)
    try:
        kitchen = Kitchen(tmp_path)
        kitchen.open()
    finally:
        os.umask(before)
    modes = {p: p.stat().st_mode & 0o2020 for p in (kitchen.cache, *kitchen.cache.iterdir())}
    lock = kitchen.cache / f"{kitchen.folder.name}.lock"
    assert modes == {kitchen.cache: 0o2020, kitchen.folder: 0o2020, lock: 0o020}


def test_who_may_only_read_uses_a_whole_store(kitchen, monkeypatch):
    kitchen.open()
    os.utime(kitchen.folder / "values.npy", ns=(1, 1))  # so that the manifest would be renewed

    def denied(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(store_module, "held", denied)
    monkeypatch.setattr(store_module, "write_atomically", denied)
    assert len(kitchen.open().arrays["values"]) == 20
    flipped(kitchen.folder)
    with refused("cannot keep the prepared"):
        kitchen.open()


def test_sources_that_are_gone(kitchen):
    kitchen.open()
    kitchen.source.unlink()
    store = find_store(kitchen.cache, kitchen.recipe(sources=None))
    assert store.arrays["values"][19, 4] == 99
    with refused("cannot read", "source.bin"):
        kitchen.open()


def test_refused_sources_leave_nothing_and_are_refused_again(kitchen):
    def refuse(md5s):
        raise UserError(f"not {md5s['source.bin']}")

    for _ in range(2):
        with refused(MD5):
            kitchen.open(accept=refuse)
    assert kitchen.built == 0
    kitchen.open()
    with refused(MD5):
        kitchen.open(accept=refuse)  # prepared by one who accepts them, still refused by others


def test_source_that_changes_while_it_is_read(kitchen):
    def slow_build(writer):
        kitchen.build(writer)
        kitchen.source.write_bytes(bytes(10))

    with refused("changed while it was read"):
        kitchen.open(build=slow_build)
    assert not kitchen.folder.exists()


@pytest.mark.parametrize("stop", [UserError("no"), KeyboardInterrupt(), RuntimeError("fault")])
def test_failed_preparation_leaves_nothing(kitchen, stop):
    def failing(writer):
        writer.add("values", np.zeros((1, 5), np.uint8))
        raise stop

    with pytest.raises(type(stop)):
        kitchen.open(build=failing)
    assert [path.suffix for path in kitchen.cache.iterdir()] == [".lock"]
    assert len(kitchen.open().arrays["values"]) == 20


def test_cache_that_cannot_be_written(kitchen, tmp_path):
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file", tmp_path / "file" / "cache"):
        kitchen.cache = cache
        with refused(str(cache), "paths.cache=DIR"):
            kitchen.open()


def test_checksum_knows_type_shape_and_order_but_not_layout():
    array = np.arange(12, dtype=np.int64).reshape(3, 4)
    different = [array.reshape(4, 3), array.astype(np.int32), array.T, array[::-1], array[:2]]
    assert len({array_sha256(a) for a in [array, *different]}) == 6
    same = [np.asfortranarray(array), array.astype(">i8"), np.repeat(array, 2, axis=1)[:, ::2]]
    assert {array_sha256(a) for a in same} == {array_sha256(array)}


PROCESS = """
import json, os, sys, time
from pathlib import Path
import numpy as np
from robustmd.domains.store import Recipe, open_store
folder = Path(sys.argv[1])

def build(writer):
    with (folder / "built").open("a") as file:
        file.write("x")
    half = np.full((500, 1000), 7, np.uint8)
    def blocks():
        yield half
        (folder / "half").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
        yield half
    writer.add_rows("values", (1000, 1000), lambda row: blocks())

lines = []
def say(line):
    lines.append(line)
    (folder / str(os.getpid())).touch()

store = open_store(folder / "cache", Recipe("tried", {}, build), say)
print(json.dumps({"lines": lines, "sum": int(store.arrays["values"].sum())}))
"""


def start(folder):
    command = [sys.executable, "-c", PROCESS, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result(process):
    return json.loads(process.communicate(timeout=300)[0])


def wait_for(path):
    end = time.monotonic() + 300
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is a POSIX signal")
def test_processes_prepare_once_and_a_killed_one_is_neither_waited_for_nor_believed(tmp_path):
    killed = start(tmp_path)
    wait_for(tmp_path / "half")
    others = [start(tmp_path), start(tmp_path)]
    for process in others:
        wait_for(tmp_path / str(process.pid))
    killed.kill()
    killed.communicate()
    assert not list((tmp_path / "cache").glob("tried-*/manifest.json"))
    (tmp_path / "go").touch()
    for found in map(result, others):
        assert found["sum"] == 7_000_000
        assert found["lines"][0].startswith(f"process {killed.pid} on ")
        assert found["lines"][0].endswith(" is busy with preparing tried; waiting for it")
    assert (tmp_path / "built").read_text() == "xx"  # one of the two has what the other prepared
    assert not list((tmp_path / "cache").glob(".tried*"))


@pytest.mark.skipif(sys.platform == "win32", reason="resource is a POSIX module")
def test_disk_that_takes_no_more(kitchen):
    """A real failed write, by a limit on files' size; without the limit the same succeeds."""
    import resource

    kitchen.source.write_bytes(bytes(100_000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with refused("File too large", "paths.cache=DIR"):
            kitchen.open()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not kitchen.folder.exists()
    assert kitchen.open().arrays["values"].shape == (20_000, 5)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named_as_that(tmp_path, monkeypatch, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(UserError, match=r"(locks|supported).* paths\.cache=DIR"):
        open_store(tmp_path, Recipe("tried", {}, lambda writer: None), print)
