"""The one exception that is a message to a person."""


class UserError(Exception):
    """Something the user can mend: one line with what was given, what is allowed, what to do next.

    The command line prints the line and exits with code 2; no traceback.
    """
