"""Fixed weights against learned ones: does the adversary find what the best fixed weights would?
And leave one domain out: the test accuracy on each domain by the runs that kept it out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from robustmd.registry import METHODS
from robustmd.report import statistics
from robustmd.report.numbers import (
    MOST_NAMED,
    Study,
    compared,
    domains_text,
    folder_name,
    ground,
    hashed,
    row_names,
)
from robustmd.report.tables import (
    Table,
    interval_text,
    mean_and_spread,
    shown_name,
    signed,
    spread_words,
    with_spread,
)
from robustmd.runs.records import Frame, domain_name

FEWEST = 3  # fixed weights that make a front
Weights = tuple[float, ...]  # p [K], in the data set's order
LOSS = ("worst", "train", "loss")


@dataclass(frozen=True)
class Front:
    """`points`: the rows at fixed weights, by their weights; `best` of them has the smallest mean
    worst training loss; `against`: those of the `learned` rows that share a seed with it − it, in
    worst training loss."""

    study: Study
    points: dict[Weights, str]
    best: Weights
    learned: list[str]
    against: Frame

    @property
    def answer(self) -> str:
        """One sentence, with numbers."""
        name, loss = self.study.loss, self.study.values[LOSS][self.points[self.best]]
        unit = f" {name.unit}" if name.unit else ""
        best = (
            f"Does the adversary find what the best fixed weights would? The best of "
            f"{len(self.points)} fixed weights has p = {_text(self.best)} over "
            f"{domains_text(self.study.domains)} and a worst training loss of "
            f"{loss.mean():.3g}{unit} (n = {len(loss)})"
        )
        if self.against.empty:
            return f"{best}; no learned method has a seed in common with it."
        verdicts = self.against["verdict"]
        metric = self.study.metrics["loss"]
        told = []
        for one in self.against.itertuples():
            interval = interval_text(metric, one.ci95_low, one.ci95_high)
            interval = "" if math.isnan(one.ci95_low) else f" {interval}"
            told.append(f"{one.method} {signed(metric, one.difference)}{interval} {one.verdict}")
        return (
            f"{best}; of {len(verdicts)} learned methods "
            f"{verdicts.isin(['better', 'equivalent']).sum()} are better or equivalent and "
            f"{(verdicts == 'worse').sum()} worse, by the paired differences, method − best "
            f"fixed,{name.in_unit} with 95 % t intervals (Holm over them): {'; '.join(told)}."
        )

    @property
    def csv(self) -> Frame:
        """Every point and every learned method: losses of each domain, their mean and the worst, on
        train and test; the difference to the best fixed weights is in worst training loss."""
        study, lines = self.study, []
        own = [*study.domains, "mean", "worst"]
        names = [(where, split, "loss") for split in ("train", "test") for where in own]
        against = {one["method"]: one for one in self.against.to_dict("records")}
        fixed = [(row, weights) for weights, row in self.points.items()]
        for row, weights in [*fixed, *((row, None) for row in self.learned)]:
            values, one = study.values.loc[row], {} if weights else against.get(row, {})
            line: dict[str, Any] = {
                "method": row,
                "kind": "fixed" if weights else "learned",
                "weights": " ".join(map(str, weights or ())),
                "n": len(values),
                "best_fixed": ("yes" if weights == self.best else "no") if weights else None,
            }
            for name in names:
                line |= mean_and_spread("_".join(name), values[name], study.spread)
            line["difference_to_best"] = one.get("difference")
            lines.append(line | {key: one.get(key) for key in ("ci95_low", "ci95_high", "verdict")})
        return pd.DataFrame(lines)


def _text(weights: Weights) -> str:
    """ "(0.30, 0.70)"; of many domains "(0.0005 to 0.002)"."""
    if len(weights) > MOST_NAMED:
        return f"({min(weights):.2g} to {max(weights):.2g})"
    return f"({', '.join(f'{weight:.2f}' for weight in weights)})"


def front(study: Study) -> Front | None:
    """Where at least three fixed weights were trained in the same way; of several such ways the
    one with the most points."""
    alike: dict[Any, list[str]] = {}
    for row, one in study.mixtures.iterrows():
        alike.setdefault(ground(one["settings"]), []).append(str(row))
    found = (_front(study, rows) for rows in alike.values())
    return max(filter(None, found), key=lambda one: len(one.points), default=None)


def _front(study: Study, rows: Sequence[str]) -> Front | None:
    by_weights: dict[Weights, str] = {}
    seeds = study.values.groupby("row").size()
    for row in sorted(rows, key=lambda one: -seeds[one]):
        weights = _weights(study.rows.loc[row], len(study.domains))
        if weights is not None:
            by_weights.setdefault(weights, row)
    if len(by_weights) < FEWEST or len(study.domains) < 2:
        return None
    points, loss = dict(sorted(by_weights.items())), study.values[LOSS].groupby("row").mean()
    best = min(points, key=lambda weights: loss[points[weights]])
    learned = [row for row in rows if METHODS.flag(study.rows.loc[row, "method"], "learns")]
    its_seeds = {*study.values.loc[points[best]].index}
    lines = [
        compared(study, row, points[best], LOSS)
        for row in learned
        if its_seeds & {*study.values.loc[row].index}
    ]
    against = statistics.with_verdicts(pd.DataFrame(lines)) if lines else pd.DataFrame()
    return Front(study, points, best, learned, against)


def _weights(row: Frame, count: int) -> Weights | None:
    """Of fixed weights that are a key (even): its prior, or 1/K."""
    if METHODS.flag(row["method"], "learns") or "method.prior" not in row["settings"]:
        return None
    prior = row["config"]["method"].get("prior")
    if prior is None:
        return (1 / count,) * count
    is_list = isinstance(prior, list) and len(prior) == count
    return tuple(map(float, prior)) if is_list else None


def leave_one_out(studies: Sequence[Study]) -> list[tuple[str, str, Table]]:
    """(title, folder, table) of each data set where some mixture has, in a common seed, a run with
    each domain kept out, all else the same. Every cell of a row is over the seeds that have all of
    them."""
    by_data: dict[Any, list[Study]] = {}
    for study in studies:
        if len(study.unseen) == 1:
            config = study.runs.iloc[0]
            measured = tuple(map(domain_name, config["summary"]["domains"]))
            by_data.setdefault((config["data"], measured, study.loss), []).append(study)
    taken = {study.folder.lower() for study in studies}
    found = []
    for (data, domains, _), members in by_data.items():
        rows: dict[Any, dict[str, tuple[Study, str]]] = {}
        for study in members:
            for row, one in study.mixtures.iterrows():
                kept_out = rows.setdefault(hashed(one["settings"], "data.unseen"), {})
                kept_out[study.unseen[0]] = study, str(row)
        parts, whole = {}, {}
        for key, kept in rows.items():
            if {*kept} == {*domains}:
                columns = {
                    name: study.values[f"unseen_{name}", "test", study.accuracy][row]
                    for name, (study, row) in ((name, kept[name]) for name in domains)
                }
                values = pd.DataFrame(columns).dropna()
                if len(values):
                    study, row = kept[domains[0]]
                    parts[key], whole[key] = values, study.rows.loc[row]
        if parts:
            first = pd.DataFrame(whole.values(), index=[*range(len(whole))])
            left = [{k: v for k, v in s.items() if k != "data.unseen"} for s in first["settings"]]
            first["settings"], first["label"] = left, first["method"]
            table = _leave_one_out(members[0], data, row_names(first), [*parts.values()], first)
            place = folder_name(f"{data}-leave-one-out", taken)
            found.append((f"{data}: leave one domain out", place, table))
    return found


def _leave_one_out(
    study: Study, data: str, names: Any, parts: Sequence[Frame], first: Frame
) -> Table:
    score, kind, raw, shown = study.accuracy, study.spread, [], []
    metric = study.metrics[score]
    heads = {name: f"unseen_{name}_test_{score}" for name in parts[0]}
    for place, values in enumerate(parts):
        of_all = values.assign(**{"": values.mean(axis=1)})
        cfg = first["configurations"].iloc[place]
        line = {
            "method": names[place],
            "source": "this report",
            "n": len(values),
            "configurations": cfg,
            "seeds": " ".join(map(str, values.index)),
            "selection": study.rule.name,
        }
        texts = {"method": names[place]}
        for name in of_all:
            both = mean_and_spread(heads.get(name, f"unseen_mean_test_{score}"), of_all[name], kind)
            line |= both
            column = shown_name(study, (f"unseen_{name or 'mean'}", "test", score))
            texts[column] = with_spread(metric, *both.values())
        raw.append(line)
        shown.append(texts | {"n": str(len(values)), "cfg": str(cfg)})
    measured = f"{metric.name} [{metric.unit}]" if metric.unit else metric.name
    caption = (
        f"{data}, leave one domain out: a column is the test {measured} on a domain "
        "by runs that kept it out of training, the last the average over the domains, within "
        f"each seed. {spread_words([len(values) for values in parts], kind)} Every value is of "
        f"{study.rule.words}, chosen without the domain kept out; n counts the seeds that have "
        "every domain kept out, cfg the configurations of the method that were run."
    )
    return Table(f"results of {data}", pd.DataFrame(raw), pd.DataFrame(shown), caption)
