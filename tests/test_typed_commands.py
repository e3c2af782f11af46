"""Every command of README and docs is typed as it stands there, but for shorter runs.

What needs more than a machine has for certain says so in the docs, in words of LACKS: on the
command's own line of a block or a table, else in its paragraph. Such a command, and no other, may
end with a message, and with the one that belongs to its words; it is counted as skipped.
"""

import re
import shlex
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from robustmd import cli

ROOT = Path(__file__).parent.parent
LACKS = {  # the words in the docs -> what is said where it is not there
    "a network": r"lacks|hydra/launcher=joblib: no such option",
    "needs ImageNet": r"lacks|their file is not there",
    "needs weights": r"their file is not there",
    "the extra": r"is not installed|hydra/launcher=\w+: no such option",
    "SLURM": r"hydra/launcher=\w+: no such option",
    "a GPU": "no such device",
}
MARK = re.compile("|".join(LACKS))
SHORT = [
    "training.iterations=2",
    "training.warmup=0",
    "training.batch_size=20",
    "evaluation.every=2",
    "evaluation.examples=20",
]
BEST = ["data.validation=0.2", "evaluation.keep=best_val"]
VARIABLES = {  # that a page sets for its commands
    rf"\${name}\b": value
    for page in ("reproduction", "choosing_lambda")
    for name, value in re.findall(
        r'^ *(\w)="([^"]*)"', (ROOT / "docs" / f"{page}.md").read_text("utf-8"), re.M
    )
}
STAND_INS = VARIABLES | {  # what a reader puts in by himself, or has trained before
    r"(?<=report )fair/\w+": "outputs",
    r"outputs/digits_mini/opt/[^/ ]+/seed=0|\b(RUN|RUN_DIR)\b": "{run}",
    r"method.run=FOLDER": "method.run={run.parent}",
    r"paths.data=DIR": "paths.data=data",
    r"trials=12": "trials=2",
    r"--config-dir DIR": "--config-dir own",
    r"(?<=report )DIR": "outputs",
    r"\bA B\b": "outputs outputs",
    r"\bNAME\b( key=value …)?": "digits_mini",
    r"\bKEY\b": "method.lam",
    r"\bFAMILY\b": "digits_typed",
    r"-m …": "-m method=even,opt",
    r"0,1,…,19": "0,1",
    r" …$": " data=folder data.root=DIR",
}
PROGRAMS = re.compile(
    r"(\.venv/bin/)?(robustmd|bash|pip|pipx|uvx|python|torchrun|mlflow|tensorboard|wandb) \S"
)
ELSEWHERE = {  # what takes long, and programs around ours -> where it is started
    "python scripts/planted": "scripts/test_planted.py",
    "python scripts/theory": "scripts/test_theory.py",
    "python scripts/bench": "scripts/test_bench.py",
    "torchrun ": "training/test_distributed.py",
    "python scripts/": "test_typed_commands.py",
}


class Command(NamedTuple):
    page: str
    typed: str
    said: str  # with it: its line, or its paragraph


def commands() -> Iterator[Command]:
    """Every one, once for each page; blocks line by line, in prose what stands in backticks."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text("utf-8").replace("\\\n", " ")
        for i, part in enumerate(re.split(r"^```.*\n", text, flags=re.M)):
            for passage in [part] if i % 2 else re.split(r"\n\s*\n", part):
                yield from _in_passage(path.stem, passage, bool(i % 2))
    for path in sorted((ROOT / "scripts").glob("*.sh")):
        yield from _in_passage(path.name, path.read_text("utf-8").replace("\\\n", " "), True)


def _in_passage(page: str, passage: str, fenced: bool) -> Iterator[Command]:
    block = fenced or passage.lstrip("\n").startswith("    ")
    table = passage.lstrip().startswith("|")
    for line in passage.splitlines() if block or table else [passage.replace("\n", " ")]:
        for code in [line.strip()] if block else re.findall(r"`([^`]+)`", line):
            typed = re.split(r" #|  +| [|>] ", code)[0]
            if PROGRAMS.match(typed):
                yield Command(page, re.sub(r"^\.venv/bin/", "", typed), line)


ALL = [*{one.typed: one for one in [*commands()][::-1]}.values()][::-1]  # where it stands first
OURS = [
    one
    for one in ALL
    if one.typed.startswith("robustmd ") and not one.typed.startswith(tuple(ELSEWHERE))
]
OTHERS = [one for one in ALL if one not in OURS and not one.page.endswith(".sh")]
TYPED: set[tuple[str, ...]] = set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where somebody has trained before, with the files that the pages show and name."""
    folder = tmp_path_factory.mktemp("typed")
    for path in (ROOT / "docs").glob("*.md"):
        for block in re.findall(r"```python\n(# (\w+\.py)\n.*?)```", path.read_text("utf-8"), re.S):
            (folder / block[1]).write_text(block[0], "utf-8")
    (folder / "own" / "experiment").mkdir(parents=True)
    mine = ROOT / "conf" / "experiment" / "fair.yaml"
    shutil.copy(mine, folder / "own" / "experiment" / "mine.yaml")
    _photos(folder)
    (folder / "outputs").mkdir()
    (folder / "outputs" / "published").symlink_to(ROOT / "outputs" / "published")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(["train", "-m", *SHORT, "jobs=1", "method=even,opt", *BEST]) == 0
    return folder


def _photos(folder: Path) -> None:
    """DIR/DOMAIN/CLASS/*.png, and a list of them."""
    random, rows = np.random.default_rng(0), ["path,domain,label"]
    for i in range(24):
        place = f"DIR/{('photo', 'art', 'sketch')[i % 3]}/{('cat', 'dog')[i % 2]}/{i}.png"
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(folder / place)
        rows.append(f"{place},{place.split('/')[1]},{place.split('/')[2]}")
    (folder / "FILE.csv").write_text("\n".join(rows), "utf-8")


def words(typed: str, folder: Path) -> list[str]:
    """What the shell hands over, of a run that is shorter; a sweep names its runs alone."""
    (run,) = folder.glob("outputs/digits_mini/opt/*/seed=0")
    for pattern, place in STAND_INS.items():
        typed = re.sub(pattern, place.format(run=run.relative_to(folder)), typed)
    name, *arguments = shlex.split(typed)[1:]
    if name != "train" or "--help" in arguments:
        return [name, *arguments]
    given = {word.partition("=")[0] for word in arguments}
    if "experiment" in given:  # of hundreds of runs even's of one seed; test_presets.py has all
        own = ["method=even"] if "experiment=lambda" not in typed else []  # of these it has none
        few = (word for word in (*own, "seed=0") if word.partition("=")[0] not in given)
        return [name, *dict.fromkeys([*arguments, *few, "--list"])]
    if "-m" in given and "hydra/sweeper" not in given:  # which needs results
        return [name, *arguments, "--list"]
    keys = {word.partition("=")[0] for word in SHORT}
    kept = (word for word in arguments if word.partition("=")[0] not in keys)
    return [name, *kept, *SHORT, "paths.outputs=typed"]  # reports have the same two runs


@pytest.mark.slow
@pytest.mark.parametrize("command", OURS, ids=lambda one: f"{one.page}: {one.typed}")
def test_it_runs(
    command: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refused)
    monkeypatch.chdir(folder)
    for name in ("DATA", "CACHE"):
        monkeypatch.setenv(f"ROBUSTMD_{name}", str(folder / name.lower()))
    typed = tuple(words(command.typed, folder))
    if typed in TYPED:  # another way to write what was typed
        return
    TYPED.add(typed)
    try:
        code = cli.main(typed)
    except SystemExit as end:  # of --help
        code = end.code
    said = capsys.readouterr().err
    for mark in MARK.findall(command.said):
        if code == 2 and re.search(LACKS[mark], said):
            pytest.skip(mark)
    bare = len(command.typed.split()) == 2  # the name of a command, in a sentence
    assert code == 0 or (bare and "the following arguments are required" in said), said


@pytest.mark.parametrize("command", OTHERS, ids=lambda one: f"{one.page}: {one.typed}")
def test_the_others_are_started_somewhere_or_marked(command: Command) -> None:
    extras = re.findall(r"^pip install -e '\.\[([\w,]+)\]'", command.typed)
    known = metadata.metadata("robustmd").get_all("Provides-Extra") or ()
    assert all(extra in known for one in extras for extra in one.split(","))
    script = re.match(r"bash (scripts/\w+\.sh)", command.typed)  # whose commands of ours are typed
    if script:
        subprocess.run(["bash", "-n", ROOT / script[1]], check=True)
    places = [file for start, file in ELSEWHERE.items() if command.typed.startswith(start)]
    for place in places:
        started = (ROOT / "tests" / place).read_text("utf-8")
        assert "/" not in command.typed or Path(command.typed.split()[1]).stem in started
    name, *arguments = command.typed.split()
    if name == "robustmd":
        cli.parser_of(arguments[0]).parse_args(arguments[1:])
    assert script or places or MARK.search(command.said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "arguments", "words"),
    [
        ("measure_decoding", ["--images=20", "--tries=1"], "20 photos, 1 core(s):"),
        ("choosing_lambda", [], "digits_typed"),
        ("fair_tables", [], "typed_turned"),
    ],
)
def test_a_script_that_a_page_names(
    tmp_path: Path, script: str, arguments: list[str], words: str
) -> None:
    (tmp_path / "docs" / "images").mkdir(parents=True)  # figures are drawn beside the script
    (tmp_path / "outputs").symlink_to(ROOT / "outputs")
    file = shutil.copy(ROOT / "scripts" / f"{script}.py", tmp_path / "docs")
    command = [sys.executable, file, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, words in done.stdout) == (0, True), done.stderr
