"""What the fuzzers share: bytes with a few faults in them, and what may come of a command."""

import contextlib
import copy
import functools
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


ODD = (None, True, 0, -1, 2**60, 10**400, 1e308, float("inf"), float("nan"), "", "x" * 5000)
ODD += ("${a}", "\x1b[31m", "é", [], [[]], {}, {"a": 1}, [1, "a", None], {"": {"": []}})


@st.composite
def reshaped(draw: Any, whole: Any) -> Any:
    """`whole`, nested data, with one to three faults of another kind: a value of another type or
    size in a place, a key or an item that has gone, one too many."""
    found = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        inside = found
        while True:
            if isinstance(inside, list) and inside:
                key: Any = draw(st.integers(0, len(inside) - 1))
            elif isinstance(inside, dict) and inside:
                key = draw(st.sampled_from(list(inside)))
            else:
                break
            if isinstance(inside[key], dict | list) and draw(st.integers(0, 3)):
                inside = inside[key]
                continue
            fault = draw(st.sampled_from(("odd", "odd", "remove", "nest", "add")))
            if fault == "remove":
                del inside[key]
            elif fault == "nest":
                inside[key] = functools.reduce(lambda inner, _: [inner], range(50), inside[key])
            elif fault == "add" and isinstance(inside, dict):
                inside[draw(st.sampled_from(("a", "", "name")))] = draw(st.sampled_from(ODD))
            else:
                inside[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
            break
    return found


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
