"""What the fuzzers share: bytes with a few faults in them, and what may come of a command."""

import contextlib
import io
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from robustmd import cli


def fuzz(examples: int, strategy: st.SearchStrategy[Any], check: Callable[[Any], None]) -> None:
    """Hold `check` against so many inputs, always the same ones."""
    given(strategy)(
        settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )(check)
    )()


@st.composite
def damaged(draw: Any, whole: bytes, *, early: int | None = None) -> bytes:
    """`whole` with one to four faults: bytes changed, cut out, put in, doubled, the end cut off.

    early: faults begin in so many first bytes, where a format keeps its promises.
    """
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, min(early or len(content), len(content)) - 1)))
        length = draw(st.integers(1, 8))
        fault = draw(st.sampled_from(("change", "flip", "remove", "insert", "double", "end")))
        if fault == "change":
            content[place : place + length] = draw(st.binary(min_size=length, max_size=length))
        elif fault == "flip" and content:
            content[place] ^= 1 << draw(st.integers(0, 7))
        elif fault == "remove":
            del content[place : place + length * 5]
        elif fault == "insert":
            content[place:place] = draw(st.binary(max_size=8))
        elif fault == "double":
            content[place:place] = content[place : place + 5 * length]
        elif fault == "end":
            del content[place:]
    return bytes(content)


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
