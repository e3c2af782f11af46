"""What a reader sees first: one row for each method, by result, and what the numbers rest on.

`summarize` makes it once; the page, README.md and the terminal show the same `Summary`.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from robustmd.report import statistics, tables
from robustmd.report.numbers import (
    UNSET,
    Study,
    describe,
    differing,
    hashed,
    some_text,
)
from robustmd.report.tables import NOTHING, WARNED, Table, interval_text, signed, with_spread

MOST_ROWS = 12  # more are folded to the best configuration of each method
BAR = 9  # letters of a drawn interval
LAM = "method.lam"
BARS, VERDICT = "drawn", "verdict"


@dataclass(frozen=True)
class Summary:
    """`question`: what a study of λ or of time asks, with its answer, or why nothing is compared;
    `table`: its first column is the method; `rest`: the rows that are folded; `verdicts`: {word:
    the methods}."""

    title: str
    question: str
    table: Table
    rest: Table | None
    trust: str
    verdicts: dict[str, str]
    verdict: str


def summarize(study: Study, is_fair: bool = False) -> Summary:
    """`is_fair`: each seed of `study` has the configuration that its validation split chose."""
    names, by_row = _quantities(study), study.values.groupby("row")
    score = names["worst"]
    metric = study.metrics[study.accuracy]
    rows = by_row[[score]].mean().loc[[*study.rows.index]]
    order = rows[score].sort_values(ascending=metric.better == "smaller", kind="stable").index
    lines = pd.DataFrame([_line(study, str(row), names) for row in order]).fillna("")
    bars = _bars(study, list(order))
    if any(bars):
        lines.insert(lines.columns.get_loc("95 % interval"), BARS, bars)
    used = [name for name in lines if (~lines[name].isin(["", NOTHING])).any()]
    best = _best_of_each_method(study) if len(lines) > MOST_ROWS else [*order]
    is_first = np.array([row in best for row in order])
    whole = Table(f"summary of {study.data}", pd.DataFrame(), lines[used], texts=[BARS, VERDICT])
    rest = _part(whole, ~is_first) if not is_first.all() else None
    return Summary(
        _title(study),
        _question(study),
        _part(whole, is_first),
        rest,
        _trust(study, is_fair, len(lines) if rest else 0),
        verdicts(study),
        verdict(study),
    )


def _part(whole: Table, kept: np.ndarray) -> Table:
    shown = whole.shown[kept].reset_index(drop=True)
    marks = {}
    for place, row in shown.iterrows():
        for column, text in row.items():
            word = str(text).rpartition(" ")[2].lower()
            if word in statistics.VERDICTS:
                marks[int(str(place)), str(column)] = word
    return replace(whole, shown=shown, marks=marks)


def _quantities(study: Study) -> dict[str, Any]:
    """What is shown of each row: the worst domain, and the mean over all."""
    return {over: (over, "test", study.accuracy) for over in ("worst", "mean")}


def _short(study: Study) -> Any:
    """The metric with one decimal of a percentage, which is all that chance leaves."""
    metric = study.metrics[study.accuracy]
    return replace(metric, decimals=1) if metric.unit == "%" else metric


def _line(study: Study, row: str, names: Mapping[str, Any]) -> dict[str, str]:
    """The cells of one row; those that need a reference only where there is one."""
    metric, values = _short(study), study.values.loc[row]
    warned = f" {WARNED}" if tables.row_warnings(study, row) else ""
    line = {
        "method": f"{row}{warned}",
        tables.shown_name(study, names["worst"]): with_spread(
            metric, values[names["worst"]].mean()
        ),
    }
    if study.comparisons.empty:
        line["mean"] = with_spread(metric, values[names["mean"]].mean())
        spent = study.runs[study.runs["row"] == row]["seconds"].map(tables.total_seconds)
        return line | {"time": tables.seconds_text(spent.mean())}
    own = study.comparisons[study.comparisons["method"] == row]
    if own.empty:
        return line | {VERDICT: "baseline" if row in {*study.references.values()} else ""}
    gain, price = gains(study, own).iloc[0], own[own["price"]].iloc[0]
    reference = study.references[row]
    line[f"vs {study.baseline}"] = signed(metric, gain["difference"])
    line["95 % interval"] = interval_text(metric, gain["ci95_low"], gain["ci95_high"])
    line[VERDICT] = _word(gain["verdict"])
    where = "mean" if study.is_many else price["name"][0]
    line[f"cost: {where}"] = f"{signed(metric, price['difference'])} {_word(price['verdict'])}"
    if not study.is_many:
        mean = (values[names["mean"]] - study.values.loc[reference][names["mean"]]).mean()
        line["mean"] = signed(metric, mean)
    times = time_ratios(study, row)
    line["time"] = f"{times.mean():.2f}×" if len(times) else NOTHING
    if len({*study.references.values()}) > 1:
        line["against"] = reference
    return line


def _word(text: str) -> str:
    """A verdict that is sure stands out, also without colours."""
    return text.upper() if text in ("better", "worse") else text


def gains(study: Study, found: Any) -> Any:
    """The comparisons in what a method is judged by."""
    name = ("worst", "test", study.accuracy)
    return found[found["name"].map(name.__eq__) & ~found["price"]]


def _bars(study: Study, rows: Sequence[str]) -> list[str]:
    """ "···│·──●──···": the 95 % interval of each row around its difference (●) and 0 (│)."""
    if study.comparisons.empty:
        return [""] * len(rows)
    found = gains(study, study.comparisons).set_index("method")
    ends = found[["ci95_low", "difference", "ci95_high"]].T.ffill().bfill().T.astype(float)
    low, high = min(0.0, ends.min(axis=None)), max(0.0, ends.max(axis=None))
    places = (BAR - 1) * (ends - low) / (high - low or 1.0)
    zero, bars = round((BAR - 1) * -low / (high - low or 1.0)), []
    for row in rows:
        if row not in places.index:
            bars.append("")
            continue
        start, middle, end = places.loc[row].round().astype(int)
        letters = ["─" if start <= i <= end else "·" for i in range(BAR)]
        letters[zero] = "┼" if start <= zero <= end else "│"
        letters[middle] = "●"
        bars.append("".join(letters))
    return bars


def time_ratios(study: Study, row: str) -> pd.Series:
    """Seconds of training as a ratio to the reference's, by seed; empty where a run has none of
    them or the devices differ."""
    own, other = (study.runs[study.runs["row"] == one] for one in (row, study.references.get(row)))
    if len({*own["device"], *other["device"]}) > 1:
        return pd.Series(dtype=float)
    spent, base = (
        runs.set_index("seed")["seconds"].map(lambda one: one.get("training")).astype(float)
        for runs in (own, other)
    )
    return (spent / base[base > 0]).dropna()


def _best_of_each_method(study: Study) -> list[str]:
    """By worst validation loss where all rows have one, else by worst training loss."""
    means = study.values.groupby("row").mean().loc[[*study.rows.index]]
    loss = means.get(("worst", "val", "loss"), pd.Series(np.nan, means.index))
    loss = means["worst", "train", "loss"] if loss.isna().any() else loss
    return [*loss.groupby(study.rows["label"], sort=False).idxmin()]


def _title(study: Study) -> str:
    """ "digits_rotated · 6 domains · worst: rotate_90 · n = 5 seeds"."""
    tested = study.worst_domains.xs("test", level="split")
    ((worst, _),) = Counter(tested.loc[study.runs.index]).most_common(1)
    n = tables.range_text(study.runs.groupby("row").size())
    named = f"{len(study.domains):,} domains" if len(study.domains) > 1 else study.domains[0]
    return f"{study.data} · {named} · worst: {worst} · n = {n} seed{'s' * (n != '1')}"


def _trust(study: Study, is_fair: bool, folded_from: int) -> str:
    """What the numbers rest on."""
    methods = study.rows.groupby("label", sort=False)["configurations"].first()
    counts = ", ".join(f"{count} of {name}" for name, count in methods[:6].items())
    parts = []
    if len(study.comparisons):
        parts.append(f"paired by seed, Holm over {len(study.comparisons)}")
    parts.append(f"configurations run: {counts}{' …' if len(methods) > 6 else ''}")
    splits = {one.get("data.validation") for one in study.rows["settings"]}
    has_split = bool(splits - {None, 0.0})
    if is_fair:
        parts.append("each seed's configuration was chosen on its validation split")
    else:
        parts.append("validation split" if has_split else "no validation split")
    parts.append(f"values of {study.rule.words}")
    if folded_from:
        parts.append(
            f"of {folded_from} rows the one of each method with the lowest worst-case "
            f"{'validation' if has_split else 'training'} loss"
        )
    return f"Trust: {' · '.join(parts)}"


def verdict(study: Study) -> str:
    """ "Worst test accuracy against even: better: opt (+6.56 points, n = 3); undecided: kl (+0.20
    points, n = 3)." Every method that was compared counts, not the best of them."""
    if study.comparisons.empty:
        return (
            f"No verdict: it needs {study.baseline} and another mixture, trained in the same way, "
            "with a seed in common, such as by -m method=even,opt seed=0,1,2."
        )
    told = "; ".join(f"{word}: {text}" for word, text in verdicts(study).items() if text)
    return f"Worst test {study.accuracy} against {study.baseline}: {told}."


def verdicts(study: Study) -> dict[str, str]:
    """verdict -> the methods that have it, with their differences."""
    metric = study.metrics[study.accuracy]
    by_word: dict[str, list[str]] = {word: [] for word in statistics.VERDICTS}
    if len(study.comparisons):
        for one in gains(study, study.comparisons).itertuples():
            gain = f"{signed(metric, one.difference)} {one.unit}".strip()
            by_word[one.verdict].append(f"{one.method} ({gain}, n = {one.n})")
    return {word: some_text(names) for word, names in by_word.items()}


def overview(summaries: Sequence[Summary]) -> Table:
    """Data set × verdict on the worst domain."""
    lines = [{"data set": one.title.partition(" · worst")[0]} | one.verdicts for one in summaries]
    shown = pd.DataFrame(lines).replace("", NOTHING)
    return Table("verdicts by data set", pd.DataFrame(), shown, texts=[*shown])


def _question(study: Study) -> str:
    """Of a study of time, of λ, or of rows that cannot be compared; else the table answers it."""
    if {*study.runs["experiment"]} == {"running_time"} and study.references:
        told = []
        for row in study.references:
            ratio = statistics.difference(time_ratios(study, row).to_list())
            ends = f"[{ratio['ci95_low']:.3f}, {ratio['ci95_high']:.3f}]"
            told.append(f"{row} {ratio['difference']:.3f} {ends}")
        return (
            f"How long does training take? Ratio to {study.baseline}, paired by seed, with its "
            f"95 % interval: {'; '.join(told)}."
        )
    several = {name: rows for name, rows in sweeps(study).items() if len(rows) > 2}
    if several or (study.comparisons.empty and sweeps(study)):
        told = [
            _best_lambda(study, name, rows) for name, rows in (several or sweeps(study)).items()
        ]
        return f"Which λ? {' '.join(told[:3])}{' …' if len(told) > 3 else ''}"
    return verdict(study) if study.comparisons.empty else ""


def _best_lambda(study: Study, name: str, rows: Mapping[str, float]) -> str:
    means = study.values.groupby("row").mean().loc[[*rows]]
    loss, score = (means["worst", "train", "loss"], means["worst", "test", study.accuracy])
    metric = study.metrics[study.accuracy]
    best = score.idxmax() if metric.better == "larger" else score.idxmin()
    unit = f" {metric.unit}".rstrip()
    return (
        f"Of {len(rows)} values for {name}, λ = {rows[loss.idxmin()]:g} has the lowest worst "
        f"training loss ({with_spread(study.metrics['loss'], loss.min())}) and λ = "
        f"{rows[best]:g} the best worst test {study.accuracy} "
        f"({with_spread(_short(study), score[best])}{unit}, seen on test)."
    )


def sweeps(study: Study) -> dict[str, dict[str, float]]:
    """name -> {row: λ}, ascending: rows that differ in λ alone, where there are at least two values
    of it; named by method, and by what else is not the same in all sweeps of that method."""
    alike: dict[Any, dict[str, float]] = {}
    for row, settings in study.mixtures["settings"].items():
        lam = settings.get(LAM, UNSET)
        if isinstance(lam, float) and 0 < lam < math.inf:  # such that a log axis can show it
            alike.setdefault(hashed(settings, LAM), {})[str(row)] = lam
    several = [rows for rows in alike.values() if len(rows) > 1]
    found = {}
    for rows in several:
        first = study.rows.loc[next(iter(rows))]
        of_method = [
            {k: v for k, v in study.rows.loc[next(iter(one)), "settings"].items() if k != LAM}
            for one in several
            if study.rows.loc[next(iter(one)), "method"] == first["method"]
        ]
        name = f"{first['method']} {describe(first['settings'], differing(of_method))}".strip()
        found[name] = dict(sorted(rows.items(), key=lambda item: item[1]))
    return found
