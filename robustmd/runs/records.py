"""All runs below folders as two tables: one line for each run, one for each measured number."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from robustmd.runs import files
from robustmd.runs.reader import collect
from robustmd.runs.run import Run
from robustmd.runs.untrusted import Unreadable, read_table

FACTS = ["data", "domains", "unseen", "loss", "method", "domain", "seed", "status", "device"]
FACTS += ["experiment", "label", "config", "summary", "environment", "seconds"]
Frame = Any  # a DataFrame whose cells are objects, of which pandas' types say nothing
MEASURED = ("loss", "accuracy", "examples")  # of metrics.csv
AGGREGATES = ("worst", "worst_tenth", "mean", "adjusted")  # names of columns beside the domains
LONG = ["run", "split", "iteration", "domain", "metric", "value"]


@dataclass(frozen=True)
class Records:
    """`runs`, by their path below `outputs`, the folder of all: `FACTS`, as far as a run's files
    give them, `reason` ("" where its numbers may be used) and `parent`, its folder.

    `measurements` of those runs: loss, accuracy, how many examples they are of, and what else was
    measured; rows that are not whole are left out. `remarks`: what else is to be said of a path.
    """

    outputs: Path
    runs: Frame
    measurements: Frame
    remarks: Frame


def read_records(*folders: Path) -> Records:
    """Those of every run below the folders. Raises `UserError` where one is no folder."""
    collections = [collect(folder) for folder in folders]
    root = Path(os.path.commonpath([one.outputs for one in collections]))
    found = {run.path.relative_to(root).as_posix(): run for c in collections for run in c.runs}
    lines = [_facts(run, place) for place, run in found.items()]
    remarks: list[dict[str, str | None]] = []
    problems = {(one.path, one.reason): one for c in collections for one in c.problems}
    for problem in problems.values():
        place = problem.path.relative_to(root).as_posix()
        if problem.scope == "run":
            lines.append(_facts(problem.run, place) | {"reason": problem.reason})
        else:
            remarks.append({"path": place, "scope": problem.scope, "reason": problem.reason})
            remarks[-1]["data"] = problem.run.data if problem.run else None
            remarks[-1]["experiment"] = problem.run.experiment if problem.run else None
    runs = pd.DataFrame(lines, columns=["run", "parent", "reason", *FACTS], dtype=object)
    measured = [frame for place, run in found.items() for frame in _measurements(run, place)]
    return Records(
        root,
        runs.set_index("run", drop=False).sort_index(),
        pd.concat(measured or [pd.DataFrame(columns=LONG)]),
        pd.DataFrame(remarks, columns=["path", "scope", "reason", "data", "experiment"]),
    )


def _facts(run: Run | None, place: str) -> dict[str, Any]:
    line = {"run": place, "parent": place.rpartition("/")[0], "reason": ""}
    if run is None:
        return line
    facts = {name: getattr(run, name) for name in FACTS if name != "loss"}
    for name in ("domains", "unseen"):
        facts[name] = tuple(map(domain_name, facts[name]))
    facts["domain"] = None if run.domain is None else domain_name(run.domain)
    return line | facts | {"loss": run.loss_name}


def domain_name(name: str) -> str:
    """The domain's, set apart from a column over all domains: "worst (domain)"."""
    is_taken = name in AGGREGATES or name.startswith("unseen_")
    # and a name that looks like it, so that no two become one
    return f"{name} (domain)" if is_taken or name.endswith(" (domain)") else name


def _measurements(run: Run, place: str) -> list[pd.DataFrame]:
    found = []
    for domains, history in ((run.domains, run.history), (run.unseen, run.unseen_history)):
        for split, series in history.items():
            count = len(series.iterations)
            for metric in MEASURED:
                columns = {
                    "run": place,
                    "split": split,
                    "iteration": np.repeat(series.iterations, len(domains)),
                    "domain": np.tile(np.array([*map(domain_name, domains)], object), count),
                    "metric": metric,
                    "value": series.values(metric).ravel().astype(float),
                }
                found.append(pd.DataFrame(columns))
    try:
        more = pd.DataFrame(
            read_table(run.path / files.MEASURES), columns=[*files.COLUMNS[files.MEASURES]]
        )
    except Unreadable:
        return found
    more = more.drop_duplicates(["iteration", "split", "domain", "metric"], keep="last")
    known = more["domain"].isin(run.measured) & ~more["metric"].isin(MEASURED)
    own = more[known].assign(run=place, domain=more["domain"].map(domain_name))
    return [*found, own[LONG]]


def read_weights(outputs: Path, run: pd.Series) -> pd.DataFrame:
    """p_t as iteration t used it, a column for each domain; empty where none can be read."""
    domains = list(run["domains"])
    columns = {"iteration": int, "domain": str, "weight": float}
    try:
        rows = read_table(outputs / run["run"] / files.WEIGHTS, columns)
    except Unreadable:
        rows = []
    frame = pd.DataFrame(rows, columns=[*columns])
    frame["domain"] = frame["domain"].map(domain_name)
    sound = frame[frame["domain"].isin(domains) & np.isfinite(frame["weight"].astype(float))]
    last = sound.drop_duplicates(["iteration", "domain"], keep="last")
    table = last.pivot(index="iteration", columns="domain", values="weight")
    return table.reindex(columns=domains).dropna()
