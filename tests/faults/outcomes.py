"""What may come of a command."""

import contextlib
import io
from collections.abc import Sequence

from robustmd import cli


def outcome_of(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(arguments)
        except SystemExit as stop:  # argparse's own
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def ends_well(arguments: Sequence[str], codes: Sequence[int] = (0,)) -> int:
    """Run a command: a right result, or code 2 with one line. Returns the code."""
    code, out, err = outcome_of(arguments)
    assert "Traceback" not in out + err, err
    if code == 2:
        assert len(err.splitlines()) == 1, err
        assert err.startswith("robustmd: "), err
    else:
        assert code in codes, (code, err)
    return code
