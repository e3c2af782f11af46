"""A console that has gone or knows few letters, and names that would steer it."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table
from tiny import TINY

from robustmd.console import make_console, steady_streams
from robustmd.runs.listing import list_runs


def test_a_sweep_outlives_its_reader(tmp_path: Path, prepared_cache: Path) -> None:
    """`… -m seed=0,1 | head -1`, with a console of ASCII and nowhere for temporary files."""
    environment = {
        **os.environ,
        "ROBUSTMD_CACHE": str(prepared_cache),
        "PYTHONIOENCODING": "ascii",
        "TMPDIR": str(tmp_path / "nowhere"),
    }
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "robustmd",
            "train",
            "-m",
            "seed=0,1",
            "jobs=2",
            *TINY,
            "training.iterations=30",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"2 runs, 2 side by side\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 0
    assert [run.status for run in list_runs(tmp_path / "outputs")] == ["finished", "finished"]


def test_letters_that_a_console_does_not_have_become_question_marks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, "ascii"))
    with steady_streams(), steady_streams():
        print("0.5 ± 0.1 \udce9")
        assert content.getvalue() == b"0.5 ? 0.1 ?\n"  # at once, not at the end


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[red]a", "[red]a"),
        ("[/]", "[/]"),
        (":boom:", ":boom:"),
        ("\x1b]0;x\x07", r"\x1b]0;x\x07"),
        ("a\u202eb", r"a\u202eb"),
        ("a\u200bb", r"a\u200bb"),
        ("a\u3164b", r"a\u3164b"),
        ("stray \udce9", r"stray \udce9"),
        ("Größe 日本", "Größe 日本"),
    ],
)
def test_names_are_text_wherever_a_console_shows_them(name: str, shown: str) -> None:
    stream = io.StringIO()
    console = make_console(stream, width=100)
    table = Table(name, title=name)
    table.add_row(name)
    console.print(name, soft_wrap=True)
    console.print(table)
    assert stream.getvalue().count(shown) == 4
    assert all(line.isprintable() for line in stream.getvalue().split("\n"))
