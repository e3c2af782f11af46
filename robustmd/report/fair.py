"""The fair protocol: every method at the configuration that its validation split chose, each seed
for itself.

It is read from what the runs are: those that have a validation split and agree in data, backbone
and training but for what may be tuned. The test set chooses nothing.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from robustmd.config.settings import TUNED as TUNED_IN_TRAINING
from robustmd.report import tables
from robustmd.report.numbers import (
    FINGERPRINT,
    Study,
    describe,
    differing,
    ground,
    hashed,
    protocol,
    some_text,
)
from robustmd.report.tables import Table
from robustmd.runs.records import Frame

# What a configuration of a method may choose beside the method's own keys; all else is the ground
# that the methods share.
TUNED = tuple(f"training.{key}" for key in TUNED_IN_TRAINING)
DERIVED = ("method.reference", "method.weights")  # taken from other runs: no choice of anybody
PRIOR = "method.prior"  # part of the problem: other weights are another method
ABOUT = (
    "The fair protocol: of the cfg configurations of a method, every seed takes the one with the "
    "smallest worst-case validation loss, and that run alone is in the row. "
)
SHARED = (
    "on the same data with the same budget, each in the configuration that this seed's validation "
    "split chose for it"
)


@dataclass(frozen=True)
class Fair:
    """`study`: of the chosen runs alone, a row for each method. `tries`: every run of the compared
    methods, see `_tries`, with `said`, its configuration in words, and whether it was `chosen`.
    `left_out`: label -> seeds without a choice, and why. `others` counts runs with a validation
    split on other ground, which are in neither."""

    study: Study
    tries: Frame
    left_out: dict[str, list[str]]
    others: int

    @property
    def results(self) -> Table:
        return tables.results(self.study, ABOUT)

    @property
    def paired(self) -> Table | None:
        """The differences to the baseline under the protocol."""
        found = tables.differences(self.study, SHARED)
        return found and replace(found, title=f"{found.title} under the fair protocol")

    @property
    def tables(self) -> list[Table]:
        """All that a reader is shown: the results, what they cost, the differences, the front."""
        found = [self.results, budget(self), self.paired, unpaired(self.study)]
        return [table for table in found if table is not None]


def fair(study: Study) -> Fair | None:
    """The protocol, where at least two mixture methods have two configurations or more with a
    validation split on the same ground; of several grounds the one with the most runs."""
    tries = _tries(study)
    contests = [_of_same_bytes(found) for _, found in tries.groupby("ground", sort=False)]
    contests = [members for members in contests if _has_contest(members)]
    if not contests:
        return None
    members = max(contests, key=len)
    parts, rows = [], []
    left_out: dict[str, list[str]] = {}
    for _, of_pool in members.groupby("pool", sort=False):
        varying = differing(of_pool["settings"])
        keys = [key for key in of_pool["choice"].iloc[0] if key in varying]
        pool = of_pool.assign(said=[describe(one, keys) for one in of_pool["settings"]])
        chosen, left_out[pool["label"].iloc[0]] = _choices(pool)
        parts.append(pool.assign(chosen=pool.index.isin(chosen)))
        if len(chosen) and pool["domain"].isna().all():
            rows.append((pool, chosen))
    if not rows:
        return None
    most = max(pool["configuration"].nunique() for pool, _ in rows)
    runs = []
    for pool, chosen in rows:
        label, count = pool["label"].iloc[0], pool["configuration"].nunique()
        said = [f"{count} configurations, while another method has {most}"] if count < most else []
        said += left_out[label]
        own = study.runs.loc[chosen].assign(row=label, configurations=count)
        # the settings are the ground, so that it pairs with even's
        one = pool.iloc[0]
        shared = protocol(members["settings"].iloc[0], *TUNED, FINGERPRINT)
        shared |= {"method.name": one["method"], PRIOR: one["settings"].get(PRIOR)}
        own["settings"], own["said"] = [shared] * len(own), [said] * len(own)
        runs.append(own)
    every = pd.concat(parts)
    every = pd.concat([every[every["domain"].isna()], every[every["domain"].notna()]])
    of_chosen = replace(
        study, runs=pd.concat(runs), unfinished=study.unfinished[:0], twice=study.twice[:0]
    )
    return Fair(of_chosen, every, left_out, len(tries) - len(members))


def _tries(study: Study) -> Frame:
    """Runs with a validation split, finished or not. `ground`: what methods share; `pool`: whose
    budget a run is in; `configuration`: what it chose, in `choice`; `was_tried`: one that diverged
    has had its chance, one that was cut off has not; `loss`: worst on validation."""
    lost = study.unfinished[study.unfinished["data"].notna()]
    with_split = [one.get("data.validation") not in (None, 0) for one in lost["settings"]]
    losses = study.by_run["worst", "loss"].unstack("split").get("val", pd.Series(dtype=float))
    has_val = study.runs.index.isin(losses.dropna().index)
    found = pd.concat([study.runs[has_val], lost[with_split]])
    in_row = found.index.isin(study.runs.index)
    loss = losses.reindex(found.index).where(in_row)
    choices = [
        {key: one.get(key) for key in (*TUNED, *own)}
        for one in found["settings"]
        for own in [[k for k in one if k.startswith("method.") and k not in DERIVED]]
    ]
    priors = [one.get(PRIOR) for one in found["settings"]]
    return found.assign(
        label=[
            label if prior is None else f"{label} prior={prior}"
            for label, prior in zip(found["label"], priors, strict=True)
        ],
        ground=[ground(one, *TUNED, FINGERPRINT) for one in found["settings"]],
        pool=[str(key) for key in zip(found["method"], found["domain"], priors, strict=True)],
        choice=choices,
        configuration=[hashed(one) for one in choices],
        has_numbers=in_row,
        was_tried=in_row | (found["status"] == "diverged"),
        loss=loss.where(np.isfinite(loss), math.inf),
    )


def _of_same_bytes(members: Frame) -> Frame:
    """Those that read what most of them read; unfinished runs may not have written it down."""
    read = members["settings"].map(lambda one: one.get(FINGERPRINT))
    most = Counter(read[members["has_numbers"]]).most_common(1)
    return members[~members["has_numbers"] | (read == most[0][0])] if most else members[:0]


def _has_contest(members: Frame) -> bool:
    """Whether at least two mixture methods have two configurations or more."""
    mixtures = members[members["domain"].isna()]
    return bool((mixtures.groupby("pool")["configuration"].nunique() > 1).sum() > 1)


def _choices(pool: Frame) -> tuple[list[str], list[str]]:
    """The run that each seed chose: argmin over its configurations of max_k f_k on the validation
    split, of equals the first; and the seeds that had not all of them, with why."""
    count, chosen, left_out = pool["configuration"].nunique(), [], []
    for seed, runs in pool.groupby("seed"):
        tried = runs[runs["was_tried"]].drop_duplicates("configuration")
        if len(tried) < count:
            why = f"{len(tried)} of {count} configurations have a run that came to an end"
            left_out.append(f"seed {seed} is not in it: {why}")
        elif math.isinf(tried["loss"].min()):
            left_out.append(f"seed {seed} is not in it: all configurations diverged")
        else:
            of_equals = tried["choice"].map(lambda one: str(sorted(one.items())))
            chosen.append(tried["loss"][of_equals.sort_values().index].idxmin())
    return chosen, left_out


def budget(found: Fair) -> Table:
    """One line for each method: what it cost, and what each seed chose."""
    lines = []
    for label, runs in found.tries.groupby("label", sort=False):
        spent = runs["seconds"]
        at_least = "" if all("total" in one for one in spent) else "≥ "
        is_mixture = runs["domain"].isna().all()
        line = {
            "method": label,
            "cfg": str(runs["configuration"].nunique()),
            "runs": str(len(runs)),
            "not finished": str((~runs["has_numbers"]).sum()),
            "seconds": f"{at_least}{sum(map(tables.total_seconds, spent)):.0f}",
            "chosen by worst validation loss": "",
        }
        if is_mixture:
            words = chosen_text(runs, found.left_out[str(label)])
            line["chosen by worst validation loss"] = words
        lines.append(line)
    caption = (
        "Budget of the fair protocol: configurations (cfg), runs over all seeds, those of them "
        "that diverged or did not end, seconds of all from start to end (≥: not every run wrote "
        "its time down), and what each seed chose; of equals the first. A run that diverged counts "
        "as tried."
    )
    if found.tries["domain"].notna().any():
        caption += " Individual models are not compared: regret takes f* from them."
    if found.others:
        caption += (
            f" {found.others} more runs have a validation split and differ in data, backbone or "
            "training: they are not in it."
        )
    texts = ["chosen by worst validation loss"]
    name = "budget and choices of the fair protocol"
    return Table(name, pd.DataFrame(), pd.DataFrame(lines), caption, texts=texts)


def chosen_text(runs: Frame, left_out: Sequence[str]) -> str:
    """ "learning_rate=0.02 λ=1 (seeds 0, 2); learning_rate=0.089 λ=0.47 (seed 1)"."""
    seeds: dict[str, list[str]] = {}
    for one in runs[runs["chosen"]].sort_values("seed").itertuples():
        seeds.setdefault(one.said or "the only one", []).append(str(one.seed))
    said = (
        f"{name} (seed{'s' if len(of) > 1 else ''} {', '.join(of)})" for name, of in seeds.items()
    )
    return "; ".join([*said, *left_out])


def unpaired(study: Study) -> Table:
    """One line for each method, by the mean over its seeds, whichever they are: the worst and the
    mean over the domains on test, and which rows are at least as good in both and better in one."""
    score = study.accuracy
    metric, names = study.metrics[score], [("worst", "test", score), ("mean", "test", score)]
    groups = study.values[names].groupby("row", sort=False)
    mean = groups.mean().loc[study.rows.index]
    whole = tables.results(study, ABOUT).shown
    shown = whole[["method", *(tables.shown_name(study, name) for name in names), "n"]].copy()
    costs = -mean.to_numpy() if metric.better == "larger" else mean.to_numpy()
    dominated = []
    for own in costs:
        is_above = (costs <= own).all(axis=1) & (costs != own).any(axis=1)
        dominated.append(some_text(list(mean.index[is_above])) or "none: on the front")
    caption = (
        "Unpaired: means over each row's own seeds, on test. A row is dominated by those whose "
        "worst and mean are both at least as good, and not both the same; the others are the "
        "Pareto front. This knows no chance: see ± and the paired differences."
    )
    shown["dominated by"] = dominated
    name = "worst against mean, unpaired"
    return Table(name, pd.DataFrame(), shown, caption, texts=["dominated by"])


def runs_csv(found: Fair) -> Frame:
    """One line for each run of the compared methods: its configuration, what its seed chose by,
    whether that chose it, what made it, and its values; none of a run that diverged or did not
    end."""
    study = found.study
    names = tables.quantities(study)
    runs = found.tries[found.tries["domain"].isna()]
    values = study.by_run.unstack("split").reindex(runs.index)
    columns = {
        "method": runs["label"],
        "seed": runs["seed"],
        "configuration": runs["said"],
        "worst_val_loss": runs["loss"].where(runs["has_numbers"]),
        "chosen": runs["chosen"].map({True: "yes", False: "no"}),
        "status": runs["status"],
        "path": runs["run"],
        "git_commit": [one.get("git_commit") for one in runs["environment"]],
        "seconds": runs["seconds"].map(tables.total_seconds),
    }
    for where, split, metric in names:
        own = values[where, metric, split]
        columns["_".join((where, split, metric))] = own.where(runs["has_numbers"])
    return pd.DataFrame(columns)
