"""Example images of every domain, where a run kept some and the licence that the runs record for it
lets them be shown."""

import contextlib
import io
from collections.abc import Iterator

import numpy as np
from PIL import Image

from robustmd.domains.domain import EMBEDDABLE
from robustmd.report.aggregate import Section
from robustmd.report.figures.drawing import Drawing, grid
from robustmd.report.figures.lines import FigureData
from robustmd.report.names import is_many, some_text
from robustmd.report.style import figure_style
from robustmd.runs import files
from robustmd.runs.untrusted import Unreadable, read_bytes

MAX_PIXELS = 2**22
WIDTH = 6.4  # inches
UNKNOWN = "not recorded"


def draw(data: FigureData) -> Drawing | None:
    """The examples.png of the section's first run that has one; None where there is none.

    A report is made to be passed on, and so is that file: the run left out the domains whose
    licence does not let their pictures be. Where that is every domain there is no figure.
    """
    section, licences = data.section, licences_of(data.section)
    shown = [name for name, licence in licences.items() if licence in EMBEDDABLE]
    picture = next(_pictures(section), None) if shown else None
    if picture is None:
        return None
    height, width = picture.shape[:2]
    with figure_style():
        figure, (axis,) = grid(section.data, 1, 1, (WIDTH, WIDTH * height / width), (0.0, 0.5))
        axis.imshow(picture, interpolation="nearest")
        axis.set_axis_off()
    # Of many domains a run keeps those of the first few.
    each = f"some of the {len(licences):,} domains" if is_many([*licences]) else "each domain"
    names = some_text(shown)
    left_out = [name for name in licences if name not in shown]
    without = f" Left out for their licence: {some_text(left_out)}." if left_out else ""
    return Drawing(
        "examples",
        "Example images",
        f"Training images of {each}, as the model is given them: {names}.{without}",
        figure,
        f"Example images of {names}.",
    )


def _pictures(section: Section) -> Iterator[np.ndarray]:
    """RGB [H, W, 3] uint8 of each run's file that is a PNG and no bomb, whatever else it is."""
    broken = (Unreadable, OSError, ValueError, SyntaxError, Image.DecompressionBombError)
    for run in section.runs:
        with contextlib.suppress(*broken):
            content = io.BytesIO(read_bytes(run.path / files.EXAMPLES))
            with Image.open(content, formats=["PNG"]) as image:
                if image.width * image.height <= MAX_PIXELS:
                    yield np.asarray(image.convert("RGB"))


def licences_of(section: Section) -> dict[str, str]:
    """{domain: licence}, as the section's first run that records any has it; else `UNKNOWN`. A
    summary.json has one by domain, or one for all."""
    names = section.runs[0].measured
    recorded = next(filter(None, (run.summary.get("licences") for run in section.runs)), None)
    found = recorded if isinstance(recorded, dict) else dict.fromkeys(names, recorded)
    texts = {name: found.get(name) for name in names}
    return {name: one if isinstance(one, str) and one else UNKNOWN for name, one in texts.items()}
