"""Every command of README and docs is typed as it stands there, but for shorter runs."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustmd import cli

ROOT = Path(__file__).parent.parent
SHORT = [
    "training.iterations=4",
    "training.warmup=0",
    "training.batch_size=20",
    "evaluation.every=2",
    "evaluation.examples=20",
    "logging.every=1",
]
QUICK = {"planted": ["--quick"], "theory": ["--quick"], "bench": ["--quick"]}
# Words for what a reader has and a test has not, and what a machine may lack.
PLACEHOLDER = re.compile(r"…(?!/seed)|\.\.\.|@|\b(?!RUN)[A-Z][A-Z_]+\b|imports=")
MAY_LACK = re.compile(
    r"lacks|is not there|is not installed|no file of weights|no such folder|could not be|"
    r"hydra/\w+=\w+: no such option|no such device|needs a validation|DIR"
)


def commands() -> Iterator[Any]:
    seen = set()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text("utf-8").replace("\\\n", " ")
        for line in re.findall(r"(?:^|(?<=`))(?: {4})?(robustmd [a-z]+\b[^`\n]*)", text, re.M):
            typed = line.partition(" #")[0].partition("  ")[0].strip()
            words = shlex.split(typed)[1:]
            if words[0] in cli.COMMANDS and typed not in seen and not PLACEHOLDER.search(typed):
                seen.add(typed)
                yield pytest.param(words, id=f"{path.stem}: {typed}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where somebody has trained before."""
    folder = tmp_path_factory.mktemp("typed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(["train", "-m", *SHORT, "jobs=1", "method=even,opt", "seed=0,1"]) == 0
    return folder


def shortened(arguments: list[str]) -> list[str]:
    """The same run in a few iterations."""
    keys = {word.partition("=")[0] for word in SHORT}
    return [*(word for word in arguments if word.partition("=")[0] not in keys), *SHORT]


@pytest.mark.slow
@pytest.mark.parametrize("words", list(commands()))
def test_it_runs(
    words: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    (run,) = sorted(folder.glob("outputs/digits_mini/opt/*/seed=0"))[:1]
    words = [
        str(run.relative_to(folder)) if word.startswith("outputs/digits_mini/") else word
        for word in words
    ]
    name, *arguments = words
    if name == "train":
        several = "-m" in arguments or any(word.startswith("experiment=") for word in arguments)
        arguments = [*arguments, "--list"] if several else shortened(arguments)
    code = cli.main([name, *arguments, *QUICK.get(name, [])])
    said = capsys.readouterr().err
    if code == 2 and MAY_LACK.search(said):
        pytest.skip(said.strip())
    assert code == 0, said
