"""Writing a run directory: identity, whole files, checkpoints, one writer."""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robustmd.config.identity import config_hash, run_folder
from robustmd.errors import UserError
from robustmd.runs import checkpoints, files
from robustmd.runs.writer import RunDirectory

IDENTITY = {"data": {"name": "digits"}, "method": {"name": "opt", "lam": 0.1}}


def test_the_folder_says_data_method_hash_and_seed() -> None:
    """Old runs must stay found: this hash may never change."""
    path = run_folder(Path("outputs"), IDENTITY, 3)
    assert path == Path("outputs/digits/opt/f081ad82/seed=3")


odd = st.sampled_from(
    ["1:30", "2020-01-01", "*x", "!!int 3", "~", "Yes", "1e5", ": ", " #", "\x85"]
)


@example("a\x85b")
@settings(max_examples=30)
@given(st.lists(odd | st.text(max_size=2), max_size=4).map("".join))
def test_whatever_a_path_is_called_the_config_reads_back(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    directory = RunDirectory(tmp_path_factory.getbasetemp())
    config = {"data": {"root": text, "unseen": [text]}}
    directory.write_record(files.CONFIG, config)
    assert directory.record(files.CONFIG) == config


scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text(max_size=3)


@given(st.dictionaries(st.text(max_size=3), scalars, max_size=4))
def test_order_and_the_kind_of_number_do_not_matter(config: dict[str, Any]) -> None:
    floats = {
        key: float(v) if isinstance(v, int) and not isinstance(v, bool) else v
        for key, v in reversed(config.items())
    }
    assert config_hash(config) == config_hash(floats)


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text("before")

    def half(stream: IO[bytes]) -> None:
        stream.write(b"aft")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        files.write_atomically(path, half)
    assert path.read_text() == "before"
    assert [child.name for child in tmp_path.iterdir()] == ["summary.json"]
    files.write_atomically(path, lambda stream: stream.write(b"after") and None)
    assert path.read_text() == "after"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "seed=0")
    with directory.locked():
        directory.begin({"seed": 0}, {"device": "cpu"}, {"status": "running"})
    return directory


def test_a_run_that_never_began_leaves_no_directory(run: RunDirectory, tmp_path: Path) -> None:
    refused = RunDirectory(tmp_path / "other" / "seed=1")
    for directory in (refused, run):
        with pytest.raises(ValueError), directory.locked():
            raise ValueError
    assert not refused.path.parent.exists()
    assert (run.path / files.CONFIG).exists()


def test_rows_are_cut_back_to_where_a_checkpoint_was(run: RunDirectory) -> None:
    run.append(files.METRICS, [(0, "0.000", "train", "a", 2.5, 10.0, 60)])
    lengths = run.lengths()
    text = (run.path / files.METRICS).read_text()
    run.append(files.METRICS, [(4, "1.000", "train", "a", 1.5, 20.0, 60)])
    run.cut_back(lengths)
    assert (run.path / files.METRICS).read_text() == text
    assert text.splitlines() == [
        "iteration,seconds,split,domain,loss,accuracy,examples",
        "0,0.000,train,a,2.5,10.0,60",
    ]


def test_a_new_start_leaves_nothing_of_the_old(run: RunDirectory) -> None:
    run.append_log("old")
    checkpoints.save(run.path, 5, {"iteration": 5})
    with run.locked():
        run.begin({"seed": 0}, {"device": "cpu"}, {"status": "running"})
    assert not (run.path / files.LOG).exists()
    assert not list(checkpoints.newest_first(run.path))


def test_the_last_two_checkpoints_are_kept(run: RunDirectory) -> None:
    for iteration in (5, 10, 15):
        checkpoints.save(run.path, iteration, {"iteration": iteration})
    found = [(at, state["iteration"]) for at, state in checkpoints.newest_first(run.path)]
    assert found == [(15, 15), (10, 10)]
    assert len(list((run.path / files.CHECKPOINTS).iterdir())) == 2


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def with_a_wrong_bit(path: Path) -> None:
    """torch writes checksums into its files and reads none of them."""
    content = bytearray(path.read_bytes())
    content[content.index(torch.ones(8).numpy().tobytes()) + 100] ^= 1
    path.write_bytes(content)
    assert not torch.equal(torch.load(path)["w"], torch.ones(1000))


def compressed(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**7))


@pytest.mark.parametrize(
    ("damage", "words"),
    [(shortened, "("), (with_a_wrong_bit, "is damaged"), (compressed, "it is compressed")],
)
def test_a_damaged_checkpoint_is_passed_over_with_a_line(
    run: RunDirectory, damage: Callable[[Path], None], words: str
) -> None:
    for iteration in (10, 15):
        checkpoints.save(run.path, iteration, {"w": torch.ones(1000)})
    newest = run.path / files.CHECKPOINTS / "iteration-00000015.pt"
    damage(newest)
    said: list[str] = []
    assert [at for at, _ in checkpoints.newest_first(run.path, said.append)] == [10]
    (line,) = said
    assert line.startswith(f"{newest}: cannot be read as a checkpoint (")
    assert words in line


class Evil:
    """What a pickle could run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, ("evil",))


def test_a_final_model_is_loaded_as_data_only(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"w": Evil()}, run.path / files.FINAL_MODEL)
    with pytest.raises(UserError, match="cannot be read as a checkpoint"):
        checkpoints.load_model(run.path)
    assert not (tmp_path / "evil").exists()
