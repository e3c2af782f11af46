"""A console that knows few letters, and names that would steer it."""

import io
import sys

import pytest
from rich.table import Table

from robustmd.console import make_console, steady_streams


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
