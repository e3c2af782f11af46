"""Fetching: checked by torchvision, in place whole or not at all. No test asks the network."""

import errno
import hashlib
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from refusals import refused
from torchvision.datasets import utils

from robustmd.domains import published
from robustmd.domains.published import FetchError, Origin, fetch_file

CONTENT = b"published" * 1000
FIRST, SECOND = (f"http://{name}.invalid/files/file.bin" for name in ("first", "second"))
FILE = Origin("file.bin", (FIRST, SECOND), hashlib.md5(CONTENT).hexdigest())


@pytest.fixture
def mirrors(monkeypatch):
    """What each URL gives: bytes, or an exception, which comes half-way. All that were asked."""
    gives = {FIRST: CONTENT, SECOND: CONTENT}
    asked = []

    def retrieve(url, filename, *_):
        asked.append(url)
        given = gives[url]
        Path(filename).write_bytes(given if isinstance(given, bytes) else CONTENT[:1000])
        if not isinstance(given, bytes):
            raise given

    monkeypatch.setattr(utils, "_get_redirect_url", lambda url, max_hops: url)
    monkeypatch.setattr(utils, "_urlretrieve", retrieve)
    return gives, asked


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_fetches_into_a_new_folder_and_leaves_nothing_else(mirrors, tmp_path):
    lines, folder = [], tmp_path / "new" / "folder"
    path = fetch_file(FILE, folder, lines.append)
    assert path.read_bytes() == CONTENT
    assert names(folder) == ["file.bin"]
    assert lines == ["fetching file.bin from first.invalid"]


@pytest.mark.parametrize("fault", [b"other bytes", b"", TimeoutError("timed out")])
def test_second_mirror_helps_where_the_first_does_not(mirrors, tmp_path, fault):
    mirrors[0][FIRST] = fault
    assert fetch_file(FILE, tmp_path, print).read_bytes() == CONTENT
    assert mirrors[1] == [FIRST, SECOND]


def test_what_no_mirror_gives_is_one_line_and_leaves_nothing(mirrors, tmp_path):
    mirrors[0].update({FIRST: b"other bytes", SECOND: OSError(errno.ECONNREFUSED, "refused")})
    words = "file.bin", "first.invalid: File not found or corrupted", "second.invalid:"
    with refused(*words) as error:
        fetch_file(FILE, tmp_path, print)
    assert error.type is FetchError
    assert [name for name in names(tmp_path) if not name.endswith(".lock")] == []


def test_an_interrupted_fetch_leaves_nothing(mirrors, tmp_path):
    mirrors[0][FIRST] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        fetch_file(FILE, tmp_path, print)
    assert [name for name in names(tmp_path) if not name.endswith(".lock")] == []


def test_what_a_killed_fetch_left_is_not_taken_for_the_file(mirrors, tmp_path):
    left = tmp_path / ".file.bin.part"
    left.mkdir()
    (left / "file.bin").write_bytes(b"half")
    assert fetch_file(FILE, tmp_path, print).read_bytes() == CONTENT
    assert names(tmp_path) == ["file.bin"]


def test_two_at_once_fetch_once(mirrors, tmp_path, monkeypatch):
    retrieve, lines = utils._urlretrieve, []
    monkeypatch.setattr(utils, "_urlretrieve", lambda *a: (time.sleep(0.3), retrieve(*a)))
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(fetch_file, FILE, tmp_path, lines.append) for _ in range(2)]
        assert [job.result().read_bytes() for job in jobs] == [CONTENT, CONTENT]
    assert mirrors[1] == [FIRST]
    assert any("waiting" in line for line in lines)


def test_server_that_falls_silent_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the call, says nothing
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file.bin"
        with pytest.raises(FetchError, match="timed out"):
            fetch_file(Origin("file.bin", (url,), "0" * 32), tmp_path, print)
    assert socket.getdefaulttimeout() is None


@pytest.mark.skipif(os.name == "nt", reason="POSIX paths")
def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with refused(str(tmp_path / "file" / "svhn"), "make it writable", "paths.data=DIR"):
        fetch_file(FILE, tmp_path / "file" / "svhn", print)
