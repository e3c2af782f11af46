"""docs/own_data.md: its Python runs, its manifest and its table are what the code takes."""

import ast
import re
from pathlib import Path

import pytest
import torch
from PIL import Image

from robustmd.domains.folder import Folder, load

PAGE = (Path(__file__).parents[2] / "docs" / "own_data.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_its_python_runs_as_one_script(capsys):
    pieces = blocks("python")
    assert len(pieces) == 2
    with torch.random.fork_rng():  # the script seeds torch
        exec("\n".join(pieces), {"__name__": "__main__"})
    weights = ast.literal_eval(capsys.readouterr().out)
    assert list(weights) == ["day", "night"]
    assert min(weights.values()) >= 0
    assert sum(weights.values()) == pytest.approx(1, abs=1e-6)


def test_its_manifest_is_read(tmp_path):
    text = next(block for block in blocks("") if block.startswith("path,"))
    second = text.replace("photo,", "sketch,").replace("photos/", "sketches/").partition("\n")[2]
    (tmp_path / "m.csv").write_text(text + second)
    for path in re.findall(r"^(\S+\.jpg)", text + second, re.MULTILINE):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        Image.new("RGB", (9, 9)).save(tmp_path / path)
    data = load(tmp_path / "cache", manifest=tmp_path / "m.csv")
    assert (data.names, data.classes) == (("photo", "sketch"), ("cat", "dog"))


@pytest.mark.parametrize("key", ["test_share", "split_seed", "validation", "unseen"])
def test_its_defaults_are_the_schemas(key):
    default = Folder().model_dump()[key]
    row = re.search(rf"^\| `data.{key}` \| `?(\S+?)`? \|", PAGE, re.MULTILINE)
    assert row is not None
    assert row[1] == (str(default) if default != 0 else "0")


def test_all_its_keys_exist():
    keys = set(re.findall(r"data\.(\w+)(?==|`)", PAGE))
    assert {"root", "manifest", "outside", "skip_unreadable", "unseen"} <= keys
    assert keys <= Folder.model_fields.keys()
