"""A figure before it is a file, and how it becomes one."""

import io
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from robustmd.report.style import figure_style

# The same runs give the same bytes: no dates, no versions.
METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "pdf": {"CreationDate": None}}


@dataclass(frozen=True)
class Drawn:
    """One figure of one data set.

    `name` is its file's, without ending; `caption` says what is drawn, how it is computed, what the
    band is and of how many seeds; `alt` is what someone who cannot see it should know.
    """

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure


def image_bytes(figure: Figure, kind: str) -> bytes:
    """The figure as a "png" or "pdf" file."""
    out = io.BytesIO()
    with figure_style():
        figure.savefig(out, format=kind, metadata=METADATA[kind])
    return out.getvalue()
