"""The one exception that is a message to a person, and how it lists names."""

from collections.abc import Sequence


class UserError(Exception):
    """Something the user can mend: one line with what was given, what is allowed, what to do next.

    The command line prints the line and exits with code 2; no traceback.
    """


def listed(names: Sequence[str], most: int = 10) -> str:
    """ "a, b, c", or the first `most` of more and how many there are in all."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, … ({len(names)} in all)"
