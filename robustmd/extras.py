"""What the package asks for, the extras of it, and the command that installs them."""

import shlex
import sys
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec

from packaging.requirements import Requirement


def required(extra: str = "") -> list[Requirement]:
    """What every run needs; of an extra what it adds."""
    asked = [Requirement(text) for text in metadata.requires("robustmd") or ()]
    core = [one for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
    if not extra:
        return core
    return [one for one in asked if one not in core and one.marker.evaluate({"extra": extra})]  # type: ignore[union-attr]


def install(packages: Iterable[Requirement]) -> str:
    """The command that brings them in.

    It names packages and not `robustmd[extra]`, which needs what robustmd was installed from. And
    it names the interpreter that runs: the pip of another environment helps nobody.
    """
    names = [f"{one.name}{one.specifier}" for one in packages]
    uv = ["uv", "pip", "install", "--python", sys.executable]  # what it makes has no pip
    pip = [sys.executable, "-m", "pip", "install"] if find_spec("pip") else uv
    return shlex.join([*pip, *names])
