"""`robustmd explain`: what a key means, what it may be, and its value."""

from pathlib import Path

import pytest

from robustmd import cli
from robustmd.registry import METHODS

OWN = """
import robustmd
from robustmd.adversary import Fixed

@robustmd.method("leaning")
class Leaning(robustmd.Settings):
    "Fixed weights that lean to the first domain."

    first: float = robustmd.key(0.7, help="p of the first domain")

    def build(self, facts):
        return Fixed(facts.num_domains)
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("training.learning_rate", ["default  0.01", "0.03"]),
        ("training.learning_rate data=pets", ["0.005"]),
        ("training.lr training.learning_rate=1", ["training.learning_rate: η", "1.0"]),
        ("lam", ["method.lam: λ", "a number > 0", "1.0", "docs/methods/opt.md"]),
        ("method.k", ["of       method=topk", "not there, but with method=topk"]),
        ("checkpoint.seconds", ["null or a number > 0", "300.0"]),
        ("data.svhn.extra data=digits", ["true or false", "false"]),
        (
            "method=topk",
            ["method=topk: The mean of the k", "method.k", "docs/methods/topk"],
        ),
        ("data.sigmas data=pets_noise", ["0.0,4.0,8.0,12.0", "docs/noise.md"]),
        ("folder", ["data=folder: Your own domains", "data.root", "docs/own_data.md"]),
        (
            "",
            ["data=digits_mini; there are also", "training.iterations", "jobs_per_device"],
        ),
    ],
)
def test_what_is_asked_for_is_said(
    capsys: pytest.CaptureFixture[str], words: str, said: list[str]
) -> None:
    assert cli.main(["explain", *words.split()]) == 0
    printed = capsys.readouterr().out
    for text in said:
        assert text in printed


def test_a_method_and_a_config_directory_of_ones_own_are_explained_alike(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(METHODS, "_options", dict(METHODS._options))
    (tmp_path / "leaning_code.py").write_text(OWN)
    folder = tmp_path / "it's mine"
    (folder / "experiment").mkdir(parents=True)
    (folder / "experiment" / "own.yaml").write_text(
        "# @package _global_\nimports: [leaning_code]\ndefaults: [override /method: leaning]\n"
        "method: {first: 0.9}\n"
    )
    assert cli.main(["explain", "-cd", str(folder), "method.first", "experiment=own"]) == 0
    printed = capsys.readouterr().out.replace("\n", "").replace(" ", "")
    assert "pofthefirstdomain" in printed
    assert "now0.9more" in printed
    assert "leaning_code" in printed
    assert cli.main(["explain", "leaning"]) == 0
    assert "Fixed weights that lean" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["xyzzy"], "xyzzy: no such key, method or other option; robustmd explain lists all"),
        (["seed", "jobs"], "seed jobs: one key at a time"),
        (["method=xyzzy"], "method=xyzzy: no such option; allowed: individual"),
        (["seed", "--config-dir", "nowhere"], "--config-dir nowhere: there is no such folder"),
    ],
)
def test_what_is_not_there_is_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], line: str
) -> None:
    assert cli.main(["explain", *words]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert line in said
