"""Completion, as a shell asks for it."""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from robustmd.commands.completion import Settings

TABS = {
    "robustmd tra": "train track",
    "robustmd report out": "outputs/",
    "robustmd evaluate outputs/toy/opt/3f2a91c0/se": "outputs/toy/opt/3f2a91c0/seed=0/",
    "robustmd train training.schedule=co": "constant cosine",
}
SCRIPT = """\
eval "$(robustmd completion bash)"
tab() {
    COMP_LINE="$1" COMP_POINT=${#1} COMP_TYPE=9 COMPREPLY=()
    $function robustmd
    (IFS=' '; echo "${COMPREPLY[*]}")
}
set -- $(complete -p robustmd)
while [ "$1" != -F ]; do shift; done
function=$2
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_all_of_it_and_nothing_is_printed_into_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "outputs" / "toy" / "opt" / "3f2a91c0" / "seed=0").mkdir(parents=True)
    command = tmp_path / "bin" / "robustmd"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m robustmd "$@"\n')
    command.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", SCRIPT + "".join(f"tab '{line}'\n" for line in TABS)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"},
    )
    assert dict(zip(TABS, done.stdout.splitlines(), strict=True)) == TABS
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "prefix", "offered", "not_offered"),
    [
        ("method=topk", "", {"method.k=", "training.iterations=", "seed=", "data="}, {"method.t="}),
        ("", "", {"method.lam=", "data.unseen="}, {"method.k=", "data.root="}),
        ("", "data=", {"data=pets", "data=folder"}, {"data=opt"}),
        ("", "experiment=", {"experiment=demo"}, set()),
        ("-cd {own}", "experiment=", {"experiment=demo", "experiment=mine"}, set()),
        ("", "runtime.compile=", {"runtime.compile=true", "runtime.compile=false"}, set()),
        ("", "training.loss=", {"training.loss=cross_entropy"}, set()),
        ("", "data.augment=", {"data.augment=none", "data.augment=standard"}, set()),
        ("", "method=even,", {"method=even,opt"}, set()),
        ("imports=[nowhere_to_be]", "", set(), {"seed="}),
    ],
)
def test_what_is_offered(
    tmp_path: Path, words: str, prefix: str, offered: set[str], not_offered: set[str]
) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text("{}")
    line = ["robustmd", "train", *words.format(own=tmp_path).split()]
    action = argparse.ArgumentParser().add_argument("words", metavar="key=value")
    found = set(Settings(line, action, ())(prefix))
    assert found >= offered
    assert not found & not_offered


def test_an_answer_needs_neither_torch_nor_hydra() -> None:
    code = (
        "import sys, argparse\nfrom robustmd.commands.completion import Settings\n"
        "action = argparse.ArgumentParser().add_argument('x', metavar='key=value')\n"
        "print(len([*Settings(['robustmd', 'data'], action, ('data',))('')]) > 4)\n"
        "print([m for m in ('torch', 'hydra', 'pandas', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True", "[]"]
