"""A console that has gone, is closed, full or knows few letters costs its lines and no run."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table
from tiny import TINY

from robustmd import cli
from robustmd.console import make_console, steady_streams
from robustmd.runs.listing import list_runs

COMMAND = [sys.executable, "-m", "robustmd", "train"]
SHORT = [*TINY, "training.iterations=30", "evaluation.every=15", "evaluation.examples=40"]


def statuses(folder: Path) -> list[str]:
    return [one.status for one in list_runs(folder / "outputs")]


def test_a_sweep_outlives_its_reader(tmp_path: Path, prepared_cache: Path) -> None:
    """`… -m seed=0,1 | head -1`, with a console of ASCII and nowhere for temporary files."""
    environment = {
        **os.environ,
        "ROBUSTMD_CACHE": str(prepared_cache),
        "PYTHONIOENCODING": "ascii",
        "TMPDIR": str(tmp_path / "nowhere"),
    }
    process = subprocess.Popen(
        [*COMMAND, "-m", "seed=0,1", "jobs=2", *SHORT],
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
    assert statuses(tmp_path) == ["finished", "finished"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a terminal that can be closed")
def test_a_run_outlives_its_terminal_where_sighup_is_ignored(
    tmp_path: Path, prepared_cache: Path
) -> None:
    """And a terminal that can draw no bar gets lines as they come."""
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.chdir(tmp_path)
        os.environ |= {"TERM": "dumb", "ROBUSTMD_CACHE": str(prepared_cache)}
        os.execv(COMMAND[0], [*COMMAND, *SHORT])
    said = b""
    while b"iteration 0/30" not in said:
        said += os.read(terminal, 1000)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert statuses(tmp_path) == ["finished"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(("command", "code"), [(["--version"], 2), (["--help"], 2), (["train"], 0)])
def test_a_full_disk_behind_standard_output_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    code: int,
) -> None:
    """Where the lines are all that a command makes, it has failed."""
    monkeypatch.setattr("robustmd.commands.train.main", lambda _: print("a line") or 0)
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert cli.main(command) == code
    words = "robustmd: standard output: No space left on device; its lines are lost\n"
    assert capsys.readouterr().err == words


def test_letters_that_a_console_does_not_have_become_question_marks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, "ascii"))
    with steady_streams(), steady_streams():
        print("0.5 ± 0.1 \udce9")
        assert content.getvalue() == b"0.5 ? 0.1 ?\n"  # at once, not at the end


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "setting", "interactive", "escapes"),
    [
        (Terminal(), {"TERM": "xterm"}, True, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        (Terminal(), {"TERM": "dumb"}, False, False),
        (io.StringIO(), {"TERM": "xterm", "FORCE_COLOR": "1"}, False, True),
        (io.StringIO(), {"TERM": "xterm"}, False, False),
    ],
)
def test_bars_and_bold_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch,
    stream: io.StringIO,
    setting: dict[str, str],
    interactive: bool,
    escapes: bool,
) -> None:
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    console = make_console(stream)
    console.print("worst", style="bold red")
    assert console.is_interactive == interactive
    assert ("\x1b[" in stream.getvalue()) == escapes


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
