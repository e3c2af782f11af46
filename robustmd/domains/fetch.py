"""Fetching a file from its publisher: continued after a cut, checked, and put in place whole.

Bytes go to NAME.part, which the next try continues where the server can (HTTP Range). Only when
size and md5 are right does the file get its name. Proxies are taken from the environment
(http_proxy, https_proxy, no_proxy), as urllib does.
"""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from robustmd.domains.checksums import file_md5
from robustmd.domains.lock import held
from robustmd.domains.official import Origin
from robustmd.domains.shared import make_folder

Say = Callable[[str], None]
TIMEOUT = 20.0  # seconds without a byte
BLOCK_BYTES = 1 << 18
SAY_EVERY = 5.0  # seconds
MEGABYTE = 1e6


class FetchError(Exception):
    """A file could not be had: no mirror gave it, or its folder cannot be written; one line."""


class _MirrorError(Exception):
    """Why one try at one mirror ended."""


def fetch_file(origin: Origin, folder: Path, say: Say) -> Path:
    """Fetch a file into `folder` and return its path; one that another process fetched meanwhile
    is taken as it is.

    Raises FetchError.
    """
    target = folder / origin.name
    lock = folder / f"{origin.name}.lock"
    try:
        make_folder(folder)
        with held(lock, f"fetching {origin.name}", say):
            if not target.exists():
                _from_any_mirror(origin, target, say)
            # Whoever waits for the lock finds the file; nobody needs the lock any more.
            with suppress(OSError):
                lock.unlink()
    except OSError as error:
        raise FetchError(
            f"{folder} cannot be written ({error.strerror or error}); make it writable and give it "
            "space, or choose another data folder with paths.data=DIR"
        ) from error
    return target


def _from_any_mirror(origin: Origin, target: Path, say: Say) -> None:
    reasons = []
    part = target.with_name(f"{target.name}.part")
    for url in origin.urls:
        try:
            _from_mirror(url, origin, part, say)
        except _MirrorError as reason:
            reasons.append(f"{urlsplit(url).netloc}: {reason}")
        else:
            part.replace(target)
            return
    raise FetchError(f"{origin.name} from " + ", ".join(reasons))


def _from_mirror(url: str, origin: Origin, part: Path, say: Say) -> None:
    """Complete `part` from one mirror and check it. Raises _MirrorError, OSError for the disk."""
    leftover = _size(part) > 0  # of an earlier try, perhaps of other bytes
    while True:
        before = _size(part)
        if before < origin.size:
            try:
                _transfer(url, origin, part, say)
            except _MirrorError:
                if _size(part) > before:  # cut, but it got on: go on from there
                    continue
                raise
        if _size(part) == origin.size and file_md5(part) == origin.md5:
            return
        part.unlink()
        if not leftover:
            raise _MirrorError("its bytes are not the published ones")
        say(f"what was there of {origin.name} is of another file; fetching it from its first byte")
        leftover = False


def _transfer(url: str, origin: Origin, part: Path, say: Say) -> None:
    """Append to `part` what the server has beyond it; over again if the server cannot do that."""
    have = _size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        # An opener of its own: urlopen's keeps the proxies that it saw at its first call.
        response = urllib.request.build_opener().open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink()  # the server's file is shorter than what we have
        raise _MirrorError(f"HTTP {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _MirrorError(_reason(error)) from error
    with response:
        if response.status != http.client.PARTIAL_CONTENT:
            have = 0
        _check_length(response, have, origin)
        _receive(response, have, origin, part, say)


def _check_length(response: http.client.HTTPResponse, have: int, origin: Origin) -> None:
    """Refuse a file of another size before the first of its bytes is taken."""
    if have:
        given = response.headers.get("Content-Range", "")
        if given not in {f"bytes {have}-{origin.size - 1}/{total}" for total in (origin.size, "*")}:
            raise _MirrorError(f"it offers {given or 'no range'} of {origin.size} bytes")
        return
    length = response.headers.get("Content-Length")
    if length is not None and length != str(origin.size):
        raise _MirrorError(f"it offers {length} bytes, the published file has {origin.size}")


def _receive(
    response: http.client.HTTPResponse, have: int, origin: Origin, part: Path, say: Say
) -> None:
    host = urlsplit(response.url).netloc
    total = origin.size / MEGABYTE
    say(f"fetching {origin.name} from {host}: {have / MEGABYTE:.1f} of {total:.1f} MB")
    said = time.monotonic()
    with part.open("ab") as file:
        file.truncate(have)
        while have <= origin.size:  # one that goes on beyond its size is cut off and refused
            try:
                block = response.read(BLOCK_BYTES)
            except (OSError, http.client.HTTPException) as error:
                raise _MirrorError(f"cut after {have:,} bytes ({_reason(error)})") from error
            if not block:
                break
            file.write(block)
            have += len(block)
            if time.monotonic() - said >= SAY_EVERY:
                said = time.monotonic()
                say(f"fetching {origin.name}: {have / MEGABYTE:.1f} of {total:.1f} MB")
        file.flush()
        os.fsync(file.fileno())
    if have < origin.size:
        raise _MirrorError(f"cut after {have:,} of {origin.size:,} bytes")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _reason(error: Exception) -> str:
    """A network error in a few words."""
    inner = getattr(error, "reason", None) or error
    return str(getattr(inner, "strerror", None) or inner or type(inner).__name__)
