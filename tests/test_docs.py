"""The documentation agrees with the schema and conf/, and its commands are commands."""

import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

import robustmd
from robustmd import adversary, domains
from robustmd.config.check import make_config
from robustmd.config.keys import all_keys
from robustmd.config.resolve import resolve
from robustmd.methods import build_adversary
from robustmd.registry import METHODS, MethodFacts

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "methods"
DOMAINS = {"digits_mini": ["handwritten", "printed"], "digits": ["mnist", "svhn"]}
HEADINGS = [
    "Update",
    "Keys",
    "What it logs",
    "Differences from the paper",
    "When to use it",
    "Run it",
]
PLACEHOLDER = re.compile(r"…|\.\.\.|@|\b[A-Z][A-Z_]+\b")


def test_every_method_has_a_page_that_the_index_links() -> None:
    index = (PAGES / "README.md").read_text("utf-8")
    assert {path.stem for path in PAGES.glob("*.md")} == {*METHODS, "README"}
    assert re.findall(r"^\| \[`(\w+)`\]\(\1\.md\) \|", index, re.MULTILINE) == list(METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_every_page_says_all_that_a_page_says(method: str) -> None:
    page = (PAGES / f"{method}.md").read_text("utf-8")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == HEADINGS
    assert f"robustmd train method={method}" in page.partition("## Run it")[2]


def test_every_table_of_keys_is_as_they_are_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["key_tables.py", "--check"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / "scripts" / "key_tables.py"), run_name="__main__")
    assert end.value.code == 0


def test_every_key_has_a_meaning_and_a_page_that_names_it() -> None:
    for key in all_keys():
        # robustmd.train says its own; those of examples that ran in this process have no page.
        if not str(key.option).endswith("from_python") and key.page is not None:
            page = (ROOT / str(key.page)).read_text("utf-8")
            assert key.meaning, key.name
            assert f"`{key.name}" in page or f"{key.name}=" in page, key


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target


def test_the_site_has_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {page for page in pages if not re.search(rf"^{page}$", index, re.M)} == set()


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    for package in ("furo", "myst_parser"):
        pytest.importorskip(package)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for name in robustmd.__all__:
        assert f'id="robustmd.{name}"' in (tmp_path / "api.html").read_text("utf-8"), name


def test_a_message_that_the_page_of_trouble_shows_is_one_of_ours() -> None:
    page = (ROOT / "docs" / "trouble.md").read_text("utf-8")
    source = "".join(path.read_text("utf-8") for path in (ROOT / "robustmd").rglob("*.py"))
    said = re.sub(r'"\s+f?"', "", source)  # a text over several lines
    words = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    assert [one for one in words if one.strip() not in said] == []
    assert len(words) > 15


PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (robustmd, adversary, domains)
    for name in module.__all__
}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_says_what_it_is(name: str) -> None:
    words = PUBLIC[name].__doc__ or ""
    assert len(words.split()) >= 5
    assert not words.startswith(f"{name.rpartition('.')[2]}(")  # which a dataclass writes by itself


def commands() -> Iterator[Any]:
    """Every `robustmd train …` of the documentation that could be typed as it stands."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text("utf-8").replace("\\\n", " ")
        for command in dict.fromkeys(re.findall(r"robustmd train\b[^`\n]*", text)):
            typed_in = shlex.split(command.partition(" #")[0])[2:]
            own_code = any(word.startswith("imports=") for word in typed_in)  # see test_wheel.py
            if not own_code and not PLACEHOLDER.search(" ".join(typed_in)):
                yield pytest.param(typed_in, id=f"{path.stem}: {' '.join(typed_in)}")


def jobs(typed_in: list[str]) -> Iterator[list[str]]:
    """The overrides of a single run, or of each choice of a sweep but for seeds, which are alike
    (the others at their first)."""
    given = [argument for argument in typed_in if "=" in argument and argument[0] != "-"]
    overrides = OverridesParser.create().parse_overrides(given)
    choices = [
        [f"{o.get_key_element()}={value}" for value in o.sweep_string_iterator()]
        if o.is_sweep_override()
        else [text]
        for o, text in zip(overrides, given, strict=True)
    ]
    yield [values[0] for values in choices]
    for i, values in enumerate(choices):
        for value in values[1:] if values[0][:5] != "seed=" else []:
            yield [value if i == j else other[0] for j, other in enumerate(choices)]


@pytest.mark.parametrize("typed_in", list(commands()))
def test_every_command_composes_and_is_in_range(typed_in: list[str]) -> None:
    for overrides in jobs(typed_in):
        in_range(tuple(overrides))


@cache  # pages share many
def in_range(overrides: tuple[str, ...]) -> None:
    config = make_config(overrides)
    domains = DOMAINS.get(config.data.name)
    if domains is not None:
        resolve(config, domains)
    if domains is not None and not waits_for_runs(config.method):
        sizes = [100] * len(domains)
        facts = MethodFacts(len(domains), config.training.iterations, sizes)
        build_adversary(config.method, facts)


def waits_for_runs(method: Any) -> bool:
    """Whether it takes numbers from finished runs, of which a test has none."""
    key = {"regret": "reference", "retrain": "weights"}.get(method.name, "name")
    return getattr(method, key) is None


def test_a_sweep_is_more_than_one_job() -> None:
    assert list(
        jobs(["-m", "method=opt", "method.lam=0.1,1", "seed=0,1", "method.prior=[1,0]"])
    ) == [
        ["method=opt", "method.lam=0.1", "seed=0", "method.prior=[1,0]"],
        ["method=opt", "method.lam=1", "seed=0", "method.prior=[1,0]"],
    ]


@pytest.mark.parametrize("override", ["method.lamda=1", "method.lam=-1", "method=optimal"])
def test_a_command_that_is_wrong_is_found(override: str) -> None:
    with pytest.raises(Exception, match=r"lamda|method\.lam=-1|optimal"):
        test_every_command_composes_and_is_in_range([override])
