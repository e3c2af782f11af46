"""What the page shows of one run when a reader opens it: its curves, its config, its log's end."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from robustmd.report.content import SectionReport
from robustmd.report.figures.lines import thinned
from robustmd.report.names import is_many
from robustmd.report.run_list import RunEntry
from robustmd.runs import files
from robustmd.runs.untrusted import Unreadable, read_bytes

MOST_OPEN = 200  # runs of a table: of more the list has links alone
MOST_LETTERS = 400  # of a line
CONFIG_LINES, LOG_LINES = 200, 12
MOST_POINTS = 25  # of a line
WIDTH, HEIGHT = 320, 80  # of a curve's plane


class Curve(NamedTuple):
    """Lines over the iterations on one scale from `low` to `high`: each (name, its points in the
    plane as "0,80 8,75", the value at its end)."""

    title: str
    low: float
    high: float
    lines: Sequence[tuple[str, str, float]]


def config_lines(entry: RunEntry) -> list[str]:
    """config.yaml; like the log, it is anybody's text."""
    return _lines(entry.path / files.CONFIG)[:CONFIG_LINES]


def log_lines(entry: RunEntry) -> list[str]:
    """The end of the log."""
    return _lines(entry.path / files.LOG)[-LOG_LINES:]


def _lines(path: Path) -> list[str]:
    """Those that are not empty, of a line that a terminal drew over and over what it showed last;
    none where the file cannot be read."""
    try:
        text = read_bytes(path).decode("utf-8", errors="replace")
    except Unreadable:
        return []
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return [line[:MOST_LETTERS] for line in lines if line.strip()]


def run_curves(one: SectionReport, entry: RunEntry) -> list[Curve]:
    """Training losses and weights of a run that is in the table."""
    run = entry.run
    if run is None or entry.reason:
        return []
    losses, weights = one.recorded.losses(run), one.recorded.weights(run)
    if is_many(run.domains):
        losses = pd.DataFrame({"worst": losses.max(axis=1), "median": losses.median(axis=1)})
        weights = pd.DataFrame({"largest": weights.max(axis=1)})
    curves = {f"training loss{one.recorded.unit}": losses, "weight p": weights}
    return [_curve(title, frame) for title, frame in curves.items() if len(frame) > 1]


def _curve(title: str, frame: pd.DataFrame) -> Curve:
    thin = thinned(frame, MOST_POINTS)
    low, high = float(thin.to_numpy().min()), float(thin.to_numpy().max())
    x = WIDTH * (thin.index - thin.index[0]) / (thin.index[-1] - thin.index[0])
    lines = []
    for name, values in thin.items():
        y = HEIGHT * (high - values) / (high - low or math.inf)
        points = " ".join(f"{a:g},{b:g}" for a, b in zip(np.rint(x), np.rint(y), strict=True))
        lines.append((str(name), points, float(values.iloc[-1])))
    return Curve(title, low, high, lines)
