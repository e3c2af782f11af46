"""A run of own images is known by what they are: moved, renamed and changed images."""

import io
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from tiny import composed

from robustmd.config.identity import number_changing, run_folder
from robustmd.config.settings import as_dict
from robustmd.errors import UserError
from robustmd.report.settings_key import settings_of
from robustmd.runs.reader import collect
from robustmd.training import run as run_module

TIME = (10**18, 10**18)


class Own:
    """Own images and runs on them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "images"
        random = np.random.default_rng(0)
        for part in ("a/cat", "a/dog", "b/cat", "b/dog"):
            (self.root / part).mkdir(parents=True)
            for number in range(5):
                path = self.root / part / f"{number}.bmp"
                Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(path)
                os.utime(path, ns=TIME)

    def settings(self, *overrides: str) -> list[str]:
        return [
            "data=folder",
            f"data.root={self.root}",
            "training.iterations=4",
            "training.batch_size=4",
            "backbone.width=0.05",
            "runtime.threads=1",
            "runtime.device=cpu",
            "evaluation.every=4",
            f"paths.cache={self.folder / 'cache'}",
            f"paths.outputs={self.folder / 'outputs'}",
            *overrides,
        ]

    def train(self, *overrides: str) -> run_module.Outcome:
        return run_module.run(composed(*self.settings(*overrides)), Console(file=io.StringIO()))

    def move(self) -> None:
        self.root = self.root.rename(self.folder / "moved images")

    def swap(self) -> None:
        """The bytes of a cat and a dog, their times kept."""
        cat, dog = self.root / "a/cat/0.bmp", self.root / "a/dog/0.bmp"
        for path, content in {cat: dog.read_bytes(), dog: cat.read_bytes()}.items():
            path.write_bytes(content)
            os.utime(path, ns=TIME)

    def as_once(self, directory: Path) -> Path:
        """Give a run the directory that it had when paths were part of its name."""
        identity = number_changing(as_dict(composed(*self.settings())))
        before = run_folder(self.folder / "outputs", identity, 0)
        assert before != directory
        before.parent.mkdir(parents=True)
        shutil.move(directory, before)
        return before

    def configurations(self) -> list[dict[str, Any]]:
        """What the report puts runs into rows by, each once."""
        found: list[dict[str, Any]] = []
        for run in collect(self.folder / "outputs").runs:
            settings = settings_of(run)
            if settings not in found:
                found.append(settings)
        return found


@pytest.fixture
def own(tmp_path: Path) -> Own:
    return Own(tmp_path)


@pytest.mark.parametrize("named", ["by bytes", "by place"])
def test_images_that_were_moved_are_the_same_run(own: Own, named: str) -> None:
    first = own.train().directory
    if named == "by place":
        first = own.as_once(first)
    assert own.train().status == "kept"
    own.move()
    again = own.train()
    assert (again.status, again.directory) == ("kept", first)
    own.train("seed=1")
    assert len(own.configurations()) == 1


def test_a_manifest_of_the_same_images_is_the_same_run(own: Own) -> None:
    first = own.train()
    files = sorted(own.root.glob("*/*/*"))
    lines = [f"{p},{p.parts[-3]},{p.parts[-2]}" for p in (f.relative_to(own.root) for f in files)]
    manifest = own.root / "all.csv"
    manifest.write_text("\n".join(["path,domain,label", *lines]) + "\n")
    again = own.train("data.root=null", f"data.manifest={manifest}")
    assert (again.status, again.directory) == ("kept", first.directory)


@pytest.mark.parametrize("named", ["by bytes", "by place"])
def test_other_bytes_at_the_same_place_are_refused(own: Own, named: str) -> None:
    first = own.train().directory
    if named == "by place":
        first = own.as_once(first)
    own.swap()
    with pytest.raises(UserError, match=r"read other data .*force=true"):
        own.train()
    beside = own.train("force=true")
    assert beside.status == "finished"
    assert beside.directory != first
    assert own.train().directory == beside.directory
    assert len(own.configurations()) == 2
    own.swap()
    assert own.train().directory == first
