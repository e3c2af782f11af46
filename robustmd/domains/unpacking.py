"""Taking files out of a .tar.gz archive, one by one, and nothing but files, and nowhere else.

An archive with a member that would leave the folder, a link, a device or anything else that is not
a plain file or folder is refused as a whole, whether that member is wanted or not.
"""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from robustmd.domains.listing import shown

BLOCK_BYTES = 1 << 20
MAX_MEMBERS = 200_000
MAX_FILE_BYTES = 1 << 26
MAX_BYTES = 1 << 33  # of all that is taken out
PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)


class ArchiveError(Exception):
    """Why an archive is refused, in words."""


def unpack(archive: Path, folder: Path, wanted: Callable[[str], bool]) -> int:
    """Write the files that are wanted below `folder`, which is emptied first; how many they were.

    wanted: of a member's name, as "images/pug_1.jpg". Raises ArchiveError, OSError for the disk.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    count = total = 0
    try:
        # Through gzip and not through tarfile's own, which does not compare gzip's checksum.
        with gzip.open(archive) as plain, tarfile.open(fileobj=plain, mode="r|") as stream:
            for member, name in _members(stream):
                if not member.isdir() and wanted(name):
                    total += _checked_size(member)
                    if total > MAX_BYTES:
                        raise ArchiveError(f"it holds more than {MAX_BYTES:,} bytes")
                    _write(stream, member, folder / name)
                    count += 1
            _check_end(stream)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ArchiveError(f"it is damaged ({error})") from error
    return count


def _members(stream: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, str]]:
    """Every member with its name, once it is known to be harmless."""
    for count, member in enumerate(stream):
        if count == MAX_MEMBERS:
            raise ArchiveError(f"it has more than {MAX_MEMBERS:,} members")
        path = PurePosixPath(member.name)
        leaves = path.is_absolute() or ".." in path.parts
        if leaves or any(c in "\\:\0" or c < " " for c in member.name):
            raise ArchiveError(f"its member {shown(member.name)} would not stay in the folder")
        if not (member.isdir() or member.type in PLAIN):
            raise ArchiveError(f"its member {shown(member.name)} is a link or device, not a file")
        yield member, path.as_posix()


def _check_end(stream: tarfile.TarFile) -> None:
    """tarfile takes a header that is damaged for the end; there are only zeros at the end."""
    assert stream.fileobj is not None
    while block := stream.fileobj.read(BLOCK_BYTES):
        if any(block):
            raise ArchiveError("it is damaged (a header that is none)")


def _checked_size(member: tarfile.TarInfo) -> int:
    if not 0 <= member.size <= MAX_FILE_BYTES:
        raise ArchiveError(
            f"its member {shown(member.name)} has {member.size:,} bytes, more than "
            f"{MAX_FILE_BYTES:,}"
        )
    return member.size


def _write(stream: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = stream.extractfile(member)
    assert source is not None  # a plain file
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("xb") as file:
            shutil.copyfileobj(source, file)
    except FileExistsError:
        raise ArchiveError(f"its member {shown(member.name)} is there twice") from None
