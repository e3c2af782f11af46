"""The one exception that is a message to a person, and how it lists names."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

Say = Callable[[str], None]  # shows the user a line


class UserError(Exception):
    """Something the user can mend: one line with what was given, what is allowed, what to do next.

    The command line prints the line and exits with code 2; no traceback.
    """


def printable(text: object) -> str:
    """Anybody's text on one line, with all that breaks it, steers a terminal, turns its direction
    or takes no room written out as an escape: what everything shown to a person goes through."""
    shown = [
        c if c.isprintable() and c not in _BLANK else c.encode("unicode_escape").decode()
        for c in str(text)
    ]
    return "".join(shown)


_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")  # letters that show nothing


def listed(names: Sequence[str], most: int = 10) -> str:
    """ "a, b, c", or the first `most` of more and how many there are in all."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, … ({len(names)} in all)"


def first_line(error: BaseException) -> str:
    """What an exception says in its first line; its name where it says nothing."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


@contextmanager
def readable(path: object) -> Iterator[None]:
    """Within it a path that the system does not let us read is a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot read {printable(path)} ({error.strerror or error})") from error
