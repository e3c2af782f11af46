"""The figures of a report, one file a figure.

Each file has a `draw(section, traces)` that returns a `Drawn`, or None where the runs have nothing
to show in it; `draw_all(section)` asks each of them. Nothing here is loaded by
`robustmd report --help`.
"""

from robustmd.report.figures.drawn import Drawn, image_bytes
from robustmd.report.figures.gallery import draw_all

__all__ = ["Drawn", "draw_all", "image_bytes"]
