"""Where all that is printed goes: a console that may lose lines and never ends what prints them."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from robustmd.errors import printable

if TYPE_CHECKING:
    from rich.console import Console


class SteadyStream(io.TextIOWrapper):
    """Standard output or error: lines go out at once; letters that it does not have become "?".

    Where nothing can be written any more (the terminal has gone, nobody reads the pipe, the disk
    behind `>file` is full) the lines are lost, and `lost` says why: None while none are, or where
    the reader had enough (`| head -1`).
    """

    def __init__(self, stream: io.TextIOWrapper) -> None:
        stream.flush()
        super().__init__(stream.buffer, stream.encoding, errors="replace", line_buffering=True)
        self.lost: str | None = None

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """From here on into nothing, so that what is still buffered does not fail once more."""
        if not isinstance(error, BrokenPipeError):
            self.lost = error.strerror or str(error)
        with contextlib.suppress(OSError):  # a test's stream has no descriptor
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self.fileno())
            os.close(nothing)


@contextlib.contextmanager
def steady_streams() -> Iterator[None]:
    """Within it, sys.stdout and sys.stderr are steady, for print, rich, Hydra and everybody."""
    _fill_closed()
    before = sys.stdout, sys.stderr
    steady = [_steady(stream) for stream in before]
    sys.stdout, sys.stderr = steady
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream, old in zip(steady, before, strict=True):
            if isinstance(stream, SteadyStream) and stream is not old:
                stream.detach()


def _steady(stream: TextIO) -> TextIO:
    if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, SteadyStream):
        return SteadyStream(stream)
    return stream


def _fill_closed() -> None:
    """Standard streams that the caller closed (`>&-`): else a run's file would take their place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def make_console(stream: TextIO | None = None, width: int | None = None) -> Console:
    """A console on `stream` (None: sys.stdout, whichever it then is), for anybody's text: no markup
    or `:emoji:` counts in it, and what would steer a terminal is written out.

    `is_interactive` (may there be a bar?) only on a terminal that can go back a line: not where
    TERM=dumb, nor where FORCE_COLOR colours a pipe. With NO_COLOR nothing is coloured or bold.
    """
    from rich.console import Console  # noqa: PLC0415 - not for --help
    from rich.text import Text  # noqa: PLC0415

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            """Every string comes here: a line to print, a cell, a heading."""
            return super().render_str("\n".join(map(printable, text.split("\n"))), **options)

    return PlainConsole(
        file=stream,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_interactive=None if (stream or sys.stdout).isatty() else False,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )
