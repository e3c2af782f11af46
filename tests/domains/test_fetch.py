"""Fetching from a server on this machine: continued, checked, in place whole or not at all."""

import hashlib
import http.server
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest

from robustmd.domains import fetch
from robustmd.domains.fetch import FetchError, fetch_file
from robustmd.domains.official import Origin

CONTENT = np.random.default_rng(0).bytes(300_000)
OTHER = np.random.default_rng(1).bytes(300_000)


@dataclass
class Behaviour:
    """What the server does; `cut` holds, per request, after how many bytes it hangs up."""

    content: bytes = CONTENT
    ranges: bool = True
    length: bool = True
    status: int = 200
    cut: list = field(default_factory=list)
    wrong_range: bool = False
    pause: float = 0.0
    requests: list = field(default_factory=list)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):  # the name that http.server calls
        does = self.server.behaviour
        asked = self.headers.get("Range")
        does.requests.append(asked)
        self.close_connection = True
        if does.status != 200:
            self.send_error(does.status)
            return
        start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and does.ranges else 0
        if start >= len(does.content):
            self.send_error(416)
            return
        body = does.content[start:]
        self.send_response(206 if start else 200)
        if start:
            first = start + 1 if does.wrong_range else start
            last = len(does.content) - 1
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(does.content)}")
        if does.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        time.sleep(does.pause)
        self.wfile.write(body[: does.cut.pop(0)] if does.cut else body)


@pytest.fixture
def serve(monkeypatch):
    """Start a server with some behaviour; returns it with its behaviour and its URL."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    servers = []

    def start(**behaviour):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.behaviour = Behaviour(**behaviour)
        server.handle_error = lambda *_: None  # clients that hang up are what is tested
        server.url = f"http://127.0.0.1:{server.server_port}/file.bin"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def origin(*servers, content=CONTENT):
    urls = tuple(server if isinstance(server, str) else server.url for server in servers)
    return Origin("file.bin", urls, len(content), hashlib.md5(content).hexdigest())


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_fetches_into_a_new_folder_and_leaves_nothing_else(serve, tmp_path):
    lines = []
    folder = tmp_path / "new" / "folder"
    path = fetch_file(origin(serve()), folder, lines.append)
    assert path == folder / "file.bin"
    assert path.read_bytes() == CONTENT
    assert names(folder) == ["file.bin"]
    assert "fetching file.bin from 127.0.0.1" in lines[0]


def test_present_file_is_left_alone(serve, tmp_path):
    (tmp_path / "file.bin").write_bytes(b"mine")
    server = serve()
    fetch_file(origin(server), tmp_path, print)
    assert (tmp_path / "file.bin").read_bytes() == b"mine"
    assert server.behaviour.requests == []


def test_two_at_once_fetch_once(serve, tmp_path):
    server, lines = serve(pause=0.3), []
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(fetch_file, origin(server), tmp_path, lines.append) for _ in range(2)]
        contents = [job.result().read_bytes() for job in jobs]
    assert contents == [CONTENT, CONTENT]
    assert server.behaviour.requests == [None]
    assert any("waiting" in line for line in lines)
    assert names(tmp_path) == ["file.bin"]


def test_cut_transfer_goes_on_where_it_stopped(serve, tmp_path):
    server = serve(cut=[100_000, 50_000])
    path = fetch_file(origin(server), tmp_path, print)
    assert path.read_bytes() == CONTENT
    assert server.behaviour.requests == [None, "bytes=100000-", "bytes=150000-"]


def test_second_try_continues_the_first(serve, tmp_path):
    dead = serve(cut=[100_000, 0])
    with pytest.raises(FetchError, match="cut after 100,000"):
        fetch_file(origin(dead), tmp_path, print)
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[:100_000]
    assert not (tmp_path / "file.bin").exists()
    server = serve()
    assert fetch_file(origin(server), tmp_path, print).read_bytes() == CONTENT
    assert server.behaviour.requests == ["bytes=100000-"]
    assert names(tmp_path) == ["file.bin"]


def test_server_without_ranges_starts_over(serve, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:1000])
    server = serve(ranges=False)
    assert fetch_file(origin(server), tmp_path, print).read_bytes() == CONTENT
    assert server.behaviour.requests == ["bytes=1000-"]


def test_whole_part_needs_no_server(tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    unreachable = "http://127.0.0.1:1/file.bin"
    assert fetch_file(origin(unreachable), tmp_path, print).read_bytes() == CONTENT


@pytest.mark.parametrize("part", [OTHER[:1000], OTHER, CONTENT + b"x", CONTENT[:-1] + b"x"])
def test_part_of_another_file_is_thrown_away(serve, tmp_path, part):
    (tmp_path / "file.bin.part").write_bytes(part)
    lines = []
    assert fetch_file(origin(serve()), tmp_path, lines.append).read_bytes() == CONTENT
    assert any("of another file" in line for line in lines)


def test_wrong_bytes_are_never_put_in_place(serve, tmp_path):
    with pytest.raises(FetchError, match="not the published ones"):
        fetch_file(origin(serve(content=OTHER)), tmp_path, print)
    assert not (tmp_path / "file.bin").exists()
    assert not (tmp_path / "file.bin.part").exists()


def test_wrong_bytes_that_are_cut_end_too(serve, tmp_path):
    """Cut, continued and wrong: given up after one start from the first byte, not for ever."""
    server = serve(content=OTHER, cut=[1000, 300_000] * 50)
    with pytest.raises(FetchError, match="not the published ones"):
        fetch_file(origin(server), tmp_path, print)
    assert len(server.behaviour.requests) <= 4


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x"])
@pytest.mark.parametrize("length", [True, False])
def test_file_of_another_size_is_refused(serve, tmp_path, content, length):
    words = "published file has 300000" if length else "HTTP 416|not the published"
    with pytest.raises(FetchError, match=words):
        fetch_file(origin(serve(content=content, length=length)), tmp_path, print)
    assert not (tmp_path / "file.bin").exists()


def test_unknown_length_is_fine_if_the_bytes_are(serve, tmp_path):
    path = fetch_file(origin(serve(length=False)), tmp_path, print)
    assert path.read_bytes() == CONTENT


def test_second_mirror_helps_where_the_first_does_not(serve, tmp_path):
    first, second = serve(status=404), serve()
    assert fetch_file(origin(first, second), tmp_path, print).read_bytes() == CONTENT
    assert len(first.behaviour.requests) == 1


def test_second_mirror_continues_what_the_first_began(serve, tmp_path):
    first, second = serve(cut=[1000, 0]), serve()
    assert fetch_file(origin(first, second), tmp_path, print).read_bytes() == CONTENT
    assert second.behaviour.requests == ["bytes=1000-"]


def test_wrong_range_is_refused(serve, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:1000])
    with pytest.raises(FetchError, match="bytes 1001-"):
        fetch_file(origin(serve(wrong_range=True)), tmp_path, print)


def test_every_mirrors_reason_is_told_in_one_line(serve, tmp_path, one_line):
    unreachable = "http://127.0.0.1:1/file.bin"
    with pytest.raises(FetchError) as error:
        fetch_file(origin(serve(status=404), serve(status=503), unreachable), tmp_path, print)
    one_line(error, "HTTP 404 Not Found", "HTTP 503", "127.0.0.1:1: Connection refused")


def test_server_that_falls_silent(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "TIMEOUT", 0.3)
    server = serve(status=200)
    silent = threading.Event()
    monkeypatch.setattr(Handler, "send_response", lambda *_: silent.wait(2))
    try:
        with pytest.raises(FetchError, match="timed out"):
            fetch_file(origin(server), tmp_path, print)
    finally:
        silent.set()


def test_folder_that_cannot_be_written(serve, tmp_path, one_line):
    (tmp_path / "file").touch()
    with pytest.raises(FetchError) as error:
        fetch_file(origin(serve()), tmp_path / "file" / "svhn", print)
    one_line(error, str(tmp_path / "file" / "svhn"), "make it writable", "paths.data=DIR")


def test_proxy_of_the_environment_is_used(serve, tmp_path, monkeypatch):
    proxy = serve()
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    path = fetch_file(origin("http://publisher.invalid/file.bin"), tmp_path, print)
    assert path.read_bytes() == CONTENT


def test_progress_is_said_now_and_then(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "SAY_EVERY", 0.0)
    monkeypatch.setattr(fetch, "BLOCK_BYTES", 100_000)
    lines = []
    fetch_file(origin(serve()), tmp_path, lines.append)
    assert lines[1:] == [f"fetching file.bin: 0.{tenth} of 0.3 MB" for tenth in (1, 2, 3)]
