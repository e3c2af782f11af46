"""Archives: what is wanted is taken out, and hostile ones are refused whole."""

import io
import tarfile
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest

from robustmd.domains import unpacking
from robustmd.domains.unpacking import ArchiveError, unpack


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 4) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size if kind == tarfile.REGTYPE else 0, "target"
    return info


@pytest.fixture
def archive(tmp_path: Path):
    def write(*members: tarfile.TarInfo, content: Iterable[bytes] = ()) -> Path:
        path = tmp_path / "a.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for info, raw in zip_longest(members, content):
                tar.addfile(info, io.BytesIO(raw or b"x" * info.size))
        return path

    return write


def anything(name: str) -> bool:
    return True


def test_what_is_wanted_is_written_and_nothing_else(archive, tmp_path) -> None:
    path = archive(
        member("images", tarfile.DIRTYPE), member("images/a.jpg"), member("images/b.mat", size=9)
    )
    target = tmp_path / "out"
    (target / "old").mkdir(parents=True)
    assert unpack(path, target, lambda name: name.endswith(".jpg")) == 1
    assert [p.relative_to(target).as_posix() for p in target.rglob("*")] == [
        "images",
        "images/a.jpg",
    ]
    assert (target / "images" / "a.jpg").read_bytes() == b"xxxx"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../out.jpg", tarfile.REGTYPE),
        ("images/../../out.jpg", tarfile.REGTYPE),
        ("/tmp/out.jpg", tarfile.REGTYPE),
        ("images\\..\\out.jpg", tarfile.REGTYPE),
        ("c:/out.jpg", tarfile.REGTYPE),
        ("images/a\nb.jpg", tarfile.REGTYPE),
        ("images/a.jpg", tarfile.SYMTYPE),
        ("images/a.jpg", tarfile.LNKTYPE),
        ("images/a.jpg", tarfile.CHRTYPE),
        ("images/a.jpg", tarfile.BLKTYPE),
        ("images/a.jpg", tarfile.FIFOTYPE),
        ("../dir", tarfile.DIRTYPE),
    ],
)
@pytest.mark.parametrize("wanted", [True, False])
def test_hostile_members_are_refused_wanted_or_not(archive, tmp_path, name, kind, wanted) -> None:
    path = archive(member("images/good.jpg"), member(name, kind))
    target = tmp_path / "deep" / "out"
    with pytest.raises(ArchiveError, match="its member"):
        unpack(path, target, lambda _: wanted)
    written = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert written <= {"a.tar.gz", "deep/out/images/good.jpg"}


def test_a_member_that_is_there_twice_is_refused(archive, tmp_path) -> None:
    with pytest.raises(ArchiveError, match="twice"):
        unpack(archive(member("a"), member("./a")), tmp_path / "out", anything)


def test_a_link_cannot_be_made_first_and_written_through(archive, tmp_path) -> None:
    path = archive(member("images", tarfile.SYMTYPE), member("images/a.jpg"))
    with pytest.raises(ArchiveError, match="link"):
        unpack(path, tmp_path / "out", anything)


def test_sizes_and_numbers_have_limits(archive, tmp_path, monkeypatch) -> None:
    path = archive(member("a", size=600), member("b", size=600))
    monkeypatch.setattr(unpacking, "MAX_BYTES", 1000)
    with pytest.raises(ArchiveError, match="more than 1,000 bytes"):
        unpack(path, tmp_path / "out", anything)
    monkeypatch.setattr(unpacking, "MAX_FILE_BYTES", 500)
    with pytest.raises(ArchiveError, match="more than 500"):
        unpack(path, tmp_path / "out", anything)
    monkeypatch.setattr(unpacking, "MAX_MEMBERS", 1)
    with pytest.raises(ArchiveError, match="more than 1 members"):
        unpack(path, tmp_path / "out", lambda _: False)


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.7, 0.999])
def test_damaged_archives_are_refused(archive, tmp_path, keep) -> None:
    noise = (np.random.default_rng(n).bytes(1000 + n) for n in range(40))
    path = archive(*(member(f"f{n}", size=1000 + n) for n in range(40)), content=noise)
    raw = path.read_bytes()
    path.write_bytes(raw[: int(keep * len(raw))])
    with pytest.raises(ArchiveError, match="damaged"):
        unpack(path, tmp_path / "out", anything)
    path.write_bytes(raw[: len(raw) // 2] + bytes(20) + raw[len(raw) // 2 + 20 :])
    with pytest.raises(ArchiveError):
        unpack(path, tmp_path / "out", anything)
