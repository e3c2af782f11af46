"""The tables of a study. A `Table` is two DataFrames with the same rows: `raw` has every digit and
is the CSV file, `shown` has texts and is what Markdown, LaTeX, the page and the terminal show."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from robustmd.metrics import tenth
from robustmd.registry import METRICS, Metric, baselines
from robustmd.report import statistics
from robustmd.report.numbers import (
    AVERAGED_WORD,
    FINGERPRINT,
    MOST_NAMED,
    Quantity,
    Study,
    describe,
    differing,
    further_metrics,
    settings_of,
    short_key,
    some_text,
    value_of,
)
from robustmd.runs import rerun
from robustmd.runs.records import Frame
from robustmd.runs.run import constant_of
from robustmd.runs.untrusted import Unreadable

NOTHING = "–"  # where there is no number
WARNED = "†"
UNSEEN = "(unseen)"
SPLITS = {"train": "training", "test": "test"}
DIGITS = 2  # significant ones, at least, with up to six decimals
SPENT = ("training", "adversary", "data", "measurement")
MOST_LINES = 50  # that a run said: one that we made says fewer
ROUNDING = 1e-9  # nats: what float64 sums of losses may be off by, and more
ALIKE = "both trained on the same data in the same way"
SOURCE = "Qian et al., AAAI-19"
# The paper's own numbers, exactly as it prints them (Tables 2 and 3), of how many seeds is not
# stated: loss_tr, acc_tr, acc_te by domain, then the worst acc_tr and acc_te.
PRINTED = {
    ("digits", ("mnist", "svhn")): {
        "Individual MNIST": "0.001 100.00 98.81 4.01 30.80 29.58 30.80 29.58",
        "Individual SVHN": "1.91 66.66 68.25 0.10 97.11 91.84 66.66 68.25",
        "Mixture Even": "0.001 100.00 98.74 0.14 96.20 91.33 96.20 91.33",
        "Mixture Opt": "0.03 99.03 98.13 0.11 97.05 92.14 97.05 92.14",
    },
    ("pets", ("imagenet", "vgg")): {
        "Individual ImageNet": "0.07 98.95 89.92 0.85 74.56 80.44 74.56 80.44",
        "Individual VGG": "0.90 75.47 77.92 0.02 100.00 86.85 75.47 77.92",
        "Mixture Even": "0.17 95.56 88.50 0.05 99.58 89.85 95.56 88.50",
        "Mixture Oracle": "0.15 96.04 88.92 0.06 99.41 89.99 96.04 88.92",
        "Mixture Opt": "0.12 97.36 89.42 0.11 97.72 89.35 97.36 89.35",
    },
}


@dataclass(frozen=True)
class Table:
    """`raw` is empty where there is no CSV file; `file`: the name of its files, without ending.

    `marks`: {(row, column of `shown`): "best", "second" or "broken"}. `texts`: columns of `shown`
    that are no numbers, beside the first; `code`: those of them that are commands. `alarms` stand
    above all else, `warnings` and `notes` below; rows from `published` on are printed elsewhere.
    """

    title: str
    raw: Frame
    shown: Frame
    caption: str = ""
    marks: Mapping[tuple[int, str], str] = field(default_factory=dict)
    texts: Sequence[str] = ()
    code: Sequence[str] = ()
    alarms: Sequence[str] = ()
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    published: int = 10**9
    file: str = ""


def decimals(metric: Metric, value: float) -> int:
    """As the metric has; of small values so many that two digits are not 0."""
    size = abs(value)
    if metric.unit == "%" or size == 0 or not math.isfinite(size):
        return metric.decimals
    return min(6, max(metric.decimals, DIGITS - 1 - math.floor(math.log10(size))))


def with_spread(metric: Metric, mean: float, half: float = math.nan) -> str:
    """ "84.00 ± 5.29", both with the same decimals; an en dash where the mean is not known."""
    if not math.isfinite(mean):
        return NOTHING
    places = decimals(metric, mean)
    return f"{mean:.{places}f}" + (f" ± {half:.{places}f}" if math.isfinite(half) else "")


def mean_and_spread(name: str, values: Frame, kind: str) -> dict[str, float]:
    """Of a quantity's values over seeds, by the names of their columns in a CSV file."""
    half = statistics.spread(values.std(), len(values), kind)
    return {f"{name}_mean": values.mean(skipna=False), f"{name}_{kind}": half}


def signed(metric: Metric, value: float) -> str:
    """ "+1.25", "−0.031" (with a minus sign, not a hyphen), "0.00"."""
    text = f"{value:+.{decimals(metric, value)}f}".replace("-", "−")
    return text if any(digit in text for digit in "123456789") else text[1:]


def interval_text(metric: Metric, low: float, high: float) -> str:
    """ "[−0.612, −0.244]"; an en dash where n < 2."""
    return NOTHING if math.isnan(low) else f"[{signed(metric, low)}, {signed(metric, high)}]"


def p_text(p: float) -> str:
    """Two significant digits: "0.031"; "<0.0001" below that."""
    if math.isnan(p):
        return NOTHING
    digits = 2 if p >= 0.1 else 1 - math.floor(math.log10(max(p, 1e-4)))
    return "<0.0001" if p < 1e-4 else f"{p:.{digits}f}"


def seconds_text(seconds: float) -> str:
    """ "0.8 s", "42 s", "17 min", "2.3 h"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def range_text(counts: Iterable[int]) -> str:
    """ "3"; "3–5" where not all are the same."""
    found = sorted(set(counts))
    return "–".join(map(str, dict.fromkeys((found[0], found[-1]))))


def quantities(study: Study) -> list[Quantity]:
    """The columns in the paper's order: loss_tr, acc_tr, acc_te of every domain, then of all; of
    many domains also the worst tenth and the mean on training. Last the domains kept out."""
    score = study.accuracy
    three = [("train", "loss"), ("train", score), ("test", score)]
    overs = ["worst", "worst_tenth", "mean"] if study.is_many else ["worst"]
    of_all = [(over, *one) for over in overs for one in three]
    if not study.is_many:
        of_all = [*of_all[1:], of_all[0], ("mean", "test", score)]
    if (study.sizes.nunique(axis=1) > 1).any():
        of_all.append(("adjusted", "test", score))
    unseen = [*study.unseen, *(["worst"] if len(study.unseen) > 1 else [])]
    each = [(name, *one) for name in study.domains for one in three]
    kept_out = [(f"unseen_{name}", "test", score) for name in unseen]
    return [*dict.fromkeys([*each, *of_all, *kept_out])]


def shown_name(study: Study, quantity: Quantity) -> str:
    """ "worst test acc. [%]", "mnist training loss [nats]", "sketch (unseen) test acc. [%]"."""
    where, split, metric = quantity
    if where not in study.domains:
        of_unseen = where.startswith("unseen_")
        where = where.removeprefix("unseen_") if of_unseen else where.replace("_", " ")
        where += f" {UNSEEN}" if of_unseen else " trained" if study.unseen else ""
    unit = study.metrics[metric].unit
    name = "acc." if metric == "accuracy" else metric
    return f"{where} {SPLITS[split]} {name}{f' [{unit}]' if unit else ''}"


def results(study: Study, about: str = "") -> Table:
    """One line a row: mean ± spread over seeds of every quantity, the worst test accuracy first for
    a reader; with something to say `about` it our last models alone."""
    names, kind = quantities(study), study.spread
    values = study.values.reindex(columns=names)
    if about:
        values = values[values.index.get_level_values("row").isin(study.rows.index)]
    groups = values.groupby("row", sort=False)
    mean, n = groups.mean(), groups.size()
    half = groups.std().apply(lambda std: statistics.spread(std, n, kind))
    own = study.rows.loc[[row.removesuffix(f" {AVERAGED_WORD}") for row in mean.index]]
    seeds = {row: " ".join(map(str, one.index.get_level_values("seed"))) for row, one in groups}
    columns: dict[str, Any] = {
        "method": mean.index,
        "source": "this report",
        "n": n.to_numpy(),
        "configurations": own["configurations"].to_numpy(),
        "seeds": [seeds[row] for row in mean.index],
        "selection": study.rule.name,
    }
    said = {row: row_warnings(study, row) for row in study.rows.index}
    labels = [f"{row} {WARNED}" if said.get(row) else row for row in mean.index]
    cells, marks = {}, {}
    for name in names:
        metric = study.metrics[name[2]]
        columns[f"{'_'.join(name)}_mean"] = mean[name].to_numpy()
        columns[f"{'_'.join(name)}_{kind}"] = half[name].to_numpy()
        cells[name] = [
            with_spread(metric, *pair) for pair in zip(mean[name], half[name], strict=True)
        ]
        if name[0] == "worst":
            printed = [f"{x:.{decimals(metric, x)}f}" for x in mean[name]]
            for place, mark in best_and_second(printed, metric.better):
                marks[place, shown_name(study, name)] = mark
    text = pd.DataFrame({shown_name(study, name): cells[name] for name in reading_order(study)})
    if study.is_many:
        worst = worst_domains(study, list(mean.index))
        text.insert(1, "worst domain", worst["text"].to_list())
        columns |= {"worst_domain": worst["name"].to_list(), "worst_in": worst["runs"].to_list()}
    raw = pd.DataFrame(columns)
    tested = study.is_many + sum(name[1] == "test" for name in reading_order(study))
    text.insert(tested, "n", raw["n"].astype(str))
    text.insert(tested + 1, "cfg", raw["configurations"].astype(str))
    text.insert(0, "method", labels)
    published = {} if about else published_rows(study)
    if published:
        of_paper = pd.DataFrame(published.values(), columns=names[: len(study.domains) * 3 + 2])
        paper = pd.DataFrame({"method": [*published], "source": SOURCE})
        for name in of_paper:
            paper[f"{'_'.join(name)}_mean"] = of_paper[name]
        raw = pd.concat([raw.astype(object), paper.astype(object)], ignore_index=True)
        raw = raw.astype({"n": "Int64", "configurations": "Int64"})
        of_paper.columns = [shown_name(study, name) for name in of_paper]
        of_paper.insert(0, "method", [f"{name} (published)" for name in published])
        text = pd.concat([text, of_paper], ignore_index=True).fillna(NOTHING)
    notes = {
        row: said_by(study.runs[study.runs["row"] == row], "notes") for row in study.rows.index
    }
    return Table(
        f"results of {study.data}",
        raw,
        text,
        about + " ".join(results_caption(study, list(mean.index), bool(published))),
        marks,
        texts=["worst domain"],
        warnings=by_line(said),
        notes=by_line(notes),
        published=len(mean),
        file="table",
    )


def reading_order(study: Study) -> list[Quantity]:
    """Those that a reader is shown: the test accuracies, of the worst domain, those kept out, each
    and the mean; then what is of the training sets, the worst first."""

    def rank(name: Quantity) -> tuple[bool, int]:
        where, split, _ = name
        of_all = 1 if where in study.domains else 2
        place = -1 if where == "worst" else 0 if where.startswith("unseen_") else of_all
        return split == "train", place

    many_unseen = len(study.unseen) > MOST_NAMED
    hidden = {*(study.domains if study.is_many else ())}
    hidden |= {f"unseen_{name}" for name in study.unseen} if many_unseen else set()
    return sorted((name for name in quantities(study) if name[0] not in hidden), key=rank)


def best_and_second(printed: Sequence[str], better: str) -> Iterable[tuple[int, str]]:
    """(place, mark), by the means as printed, so that equal numbers are marked alike."""
    values = [float(text) for text in printed]
    ascending = sorted({x for x in values if math.isfinite(x)}, reverse=better == "larger")
    marks = dict(zip(ascending[:2], ("best", "second"), strict=False))
    if len(ascending) > 1:
        yield from ((place, marks[x]) for place, x in enumerate(values) if x in marks)


def worst_domains(study: Study, rows: Sequence[str]) -> Frame:
    """Of each row the domain that is the worst in most of its runs, of equals the first seed's:
    "rotate_90_sigma_76 (2 of 3)"; the name alone where there is one run."""
    found = []
    for row in rows:
        own = row.removesuffix(f" {AVERAGED_WORD}")
        split = "test" if row == own else "test_averaged"
        runs = study.runs.index[study.runs["row"] == own]
        counts = Counter(study.worst_domains[run, split] for run in runs)
        ((name, count),) = counts.most_common(1)
        beside = "" if len(runs) == 1 else f" ({count} of {len(runs)})"
        found.append({"name": name, "runs": count, "text": f"{name}{beside}"})
    return pd.DataFrame(found, [*rows])


def published_rows(study: Study) -> dict[str, list[str]]:
    """method -> its numbers as the paper prints them, in the order of our columns; nothing unless
    it has the data set with exactly these domains."""
    wanted = [domain.lower() for domain in study.domains]
    for (data, domains), rows in PRINTED.items():
        if data == study.data and sorted(domains) == sorted(wanted):
            places = [3 * domains.index(domain) for domain in wanted]
            order = [*(place + i for place in places for i in range(3)), -2, -1]
            return {name: [text.split()[i] for i in order] for name, text in rows.items()}
    return {}


def spread_words(counts: Iterable[int], kind: str) -> str:
    """What ± is."""
    if max(counts) > 1:
        return f"Mean ± {statistics.SPREADS[kind]}; rows with n = 1 have no ±."
    return "n = 1: no ±."


def results_caption(study: Study, rows: Sequence[str], has_published: bool) -> Iterable[str]:
    """What the numbers are, how they were chosen, and what ± is."""
    are_numbers = study.accuracy == "loss"
    worst = "largest loss" if are_numbers else "largest loss or lowest accuracy"
    yield (
        f"{study.data}: losses are {study.loss.words}{study.loss.in_unit}"
        f"{'' if are_numbers else ', accuracies in percent'}. "
        f"{spread_words(study.runs.groupby('row').size(), study.spread)} "
        f"Every value is of {study.rule.words}, the same rule for "
        "every row; n counts seeds, cfg the configurations of the method that were run. Worst: the "
        f"{worst} over the domains within each run, then averaged; the best "
        "is bold, the second underlined. Mean: uniform over the domains."
    )
    if study.is_many:
        count = len(study.domains)
        yield (
            f"Of {count:,} domains the worst tenth is the mean over the {tenth(count):,} "
            f"with the {worst}, within each measurement as the worst is. Worst domain: the one "
            f"with the {'largest test loss' if are_numbers else 'lowest test accuracy'} in most "
            "runs, and in how many. Each domain's numbers are in domains.csv."
        )
    if (study.sizes.nunique(axis=1) > 1).any():
        what = "losses" if are_numbers else "accuracies"
        yield f"Adjusted: the domains' test {what} weighted by the sizes of their training sets."
    if study.unseen:
        yield (
            f"{UNSEEN}: kept out of training; worst, mean and best-val's choice are over the "
            "domains that train, of an individual model over those that the mixtures train on."
        )
    part = study.selected["examples"][study.domains].xs("train", level="split")
    sizes = study.sizes.reindex(part.index.get_level_values("run")).to_numpy()
    is_part = part.to_numpy() < sizes
    if is_part.any():
        yield (
            "Training measurements before the last are of a fixed random part of the training set "
            f"(from {part.to_numpy()[is_part].min():.0f} examples a domain); test sets are always "
            "measured whole."
        )
    if any(row.endswith(AVERAGED_WORD) for row in rows):
        yield f"{AVERAGED_WORD}: the mean of all iterates' weights, in place of the last."
    if has_published:
        yield f"Published: as printed in {SOURCE} ({NOTHING}: not stated there)."


def lines_of(summary: Mapping[str, Any], kind: str) -> list[str]:
    """What one run said, "warnings" or "notes", each line once; of many lines the first."""
    listed = summary.get(kind)
    lines = list(dict.fromkeys(map(str, listed if isinstance(listed, list) else [])))
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"and {more:,} more {kind}"]


def said_by(runs: Frame, kind: str) -> list[str]:
    """ "nearly all weight on svhn (3 of 5 runs)": each text once, in order of first appearance."""
    counts = Counter(line for summary in runs["summary"] for line in lines_of(summary, kind))
    return [f"{line} ({count} of {count_text(runs)})" for line, count in counts.items()]


def count_text(runs: Sequence[Any] | pd.DataFrame) -> str:
    return f"{len(runs)} run{'s' if len(runs) > 1 else ''}"


def row_warnings(study: Study, row: str) -> list[str]:
    """What its runs warned of, seeds that are not in it, and models that predict one class whatever
    they see."""
    runs = study.runs[study.runs["row"] == row]
    lost = [
        f"seed {seed_of(one)} is not in it: {one.reason}"
        for one in unfinished_of(study, runs).itertuples()
    ]
    tested = (constant_of(summary).get("test", ()) for summary in runs["summary"])
    found = Counter(domain for domains in tested for domain in domains)
    where = [f"{domain} ({count} of {count_text(runs)})" for domain, count in found.items()]
    constant = [f"predicts one class for every test image of {some_text(where)}"] if where else []
    extra = study.rows.loc[row].get("said") or []
    return [*said_by(runs, "warnings"), *lost, *constant, *extra]


def unfinished_of(study: Study, runs: Frame) -> Frame:
    """Runs of the same configuration that are not in the row; one that cannot be read has its
    folder alone."""
    lost = study.unfinished
    own = lost["configuration"].isin(runs["configuration"])
    return lost[own | (lost["data"].isna() & lost["parent"].isin(runs["parent"]))]


def seed_of(run: Any) -> int | None:
    """Of a run that is left out; from its folder's name where its files do not say."""
    if isinstance(run.seed, int):
        return run.seed
    named = run.run.rpartition("seed=")[2]
    return int(named) if named.isdecimal() and len(named) < 16 else None


def by_line(said: Mapping[str, Sequence[str]]) -> list[str]:
    """ "opt λ=0.01, kl: nearly all weight on svhn (3 of 5 runs)": each line once."""
    rows: dict[str, list[str]] = {}
    for row, lines in said.items():
        for line in lines:
            rows.setdefault(line, []).append(row)
    return [f"{', '.join(labels)}: {line}" for line, labels in rows.items()]


def differences(study: Study, how: str = ALIKE) -> Table | None:
    """Every mixture against the baseline of the same data and training, over the seeds both have.

    Quantities: worst training loss, worst test accuracy, and the price: test accuracy on the domain
    that the baseline does best on (by its mean over these seeds); of many domains, their mean.
    `how`: what the two runs of a pair share, beside their seed.
    """
    found = study.comparisons
    if found.empty:
        return None
    baseline, metrics = study.baseline, [study.metrics[name[2]] for name in found["name"]]
    names = "method reference quantity unit difference ci95_low ci95_high n p_t p_exact seeds"
    raw = found[[*names.split(), "reference_mean", "margin", "p_holm", "verdict"]]

    def texts(of: Any, *names: str) -> list[str]:
        return [of(m, *pair) for m, *pair in zip(metrics, *(raw[n] for n in names), strict=True)]

    shown = pd.DataFrame(
        {
            f"method − {baseline}": raw["method"] + " − " + raw["reference"],
            "quantity": raw["quantity"],
            "difference": texts(
                lambda m, x, unit: f"{signed(m, x)} {unit}".strip(), "difference", "unit"
            ),
            "95 % interval": texts(interval_text, "ci95_low", "ci95_high"),
            "n": raw["n"].astype(str),
            "p": raw["p_t"].map(p_text),
            "exact p": raw["p_exact"].map(p_text),
            "Holm p": raw["p_holm"].map(p_text),
            "verdict": verdict_texts(found),
        }
    )
    why = f"{baseline} is what --baseline asks for, or the first of {', '.join(baselines())} here; "
    caption = (
        f"Paired by seed: method − {baseline}, {how}; {'' if baseline == baselines()[0] else why}"
        f"every value is of {study.rule.words}. Mean of the differences, 95 % t interval, "
        "n = number of seeds both have, two-sided p of the paired t test (none below n = 3) and of "
        "the exact paired permutation test (none below n = 6), Holm: the t test's p adjusted over "
        "this table. Equivalent: the interval lies inside ±0.5 points, where one "
        "test image (the resolution) is less than that, or ±5 % of "
        f"{baseline}'s loss. Better or worse: Holm p ≤ 0.05, p ≤ 0.05/3 (three quantities are "
        "looked at) and, where there is one, exact p ≤ 0.05. Undecided: anything else, and n < 3. "
        "Training loss: smaller is better; accuracy: larger."
    )
    name = f"paired differences to {baseline}"
    return Table(name, raw, shown, caption, texts=["quantity", "verdict"], file="paired")


def verdict_texts(found: Frame) -> list[str]:
    """The word, and why it is "undecided" where the numbers alone would say "equivalent"."""
    return [
        f"{one.verdict}: resolution is {one.resolution:.3g} points" if one.coarse else one.verdict
        for one in found.itertuples()
    ]


def regret(study: Study) -> Table | None:
    """The adversary's regret, measured in the runs, beside the bound that is proved for it, and an
    alarm for every broken bound."""
    runs = regrets(study)
    if runs.empty:
        return None
    alarms = [
        f"BOUND BROKEN by {one.row}, seed {one.seed}: measured regret {one.measured:.6g} is above "
        f"the proved bound {one.bound:.6g} ({one.run}). This is a mistake in the software, not in "
        "the run: please report it with that folder"
        for one in runs[runs["is_broken"]].itertuples()
    ]
    lines = []
    for row, own in runs.groupby("row", sort=False):
        holds = "NO" if own["is_broken"].any() else "yes" if own["bound"].notna().all() else None
        line = {
            "method": row,
            "n": len(own),
            "seeds": " ".join(map(str, own["seed"])),
            "measured_mean": own["measured"].mean(),
            "measured_std": own["measured"].std(),
            "bound_mean": own["bound"].mean(skipna=False),
            "mu_max": own["mu"].max(),
            "holds": holds,
            "broken_seeds": " ".join(map(str, own["seed"][own["is_broken"]])),
        }
        lines.append(line)
    raw, loss = pd.DataFrame(lines), METRICS["loss"]
    pairs = zip(raw["measured_mean"], raw["measured_std"], strict=True)
    shown = pd.DataFrame(
        {
            "method": raw["method"],
            "n": raw["n"].astype(str),
            "measured regret": [with_spread(loss, *pair).replace("-", "−") for pair in pairs],
            "proved bound": [with_spread(loss, bound) for bound in raw["bound_mean"]],
            "holds": raw["holds"].fillna(NOTHING),
        }
    )
    caption = (
        "How much better the best fixed weights would have done than the weights that were played, "
        f"against the run's own mini-batch losses,{study.loss.in_unit} per update and with the "
        f"method's regularizer; mean ± {statistics.SPREADS['std']}. Bound: what is proved for the "
        "largest ascent direction that the run saw, its mean over seeds "
        f"({NOTHING}: none is proved for this rule). It holds for every run whatever the losses "
        "were, so a run above it is a mistake in the software."
    )
    marks = {(i, "holds"): "broken" for i, word in enumerate(raw["holds"]) if word == "NO"}
    name = "regret of the adversary"
    return Table(name, raw, shown, caption, marks, texts=["holds"], alarms=alarms, file="regret")


def regrets(study: Study) -> Frame:
    """A line for each run that recorded its regret: `measured` and `bound` per update (NaN: none is
    proved), `mu`, its μ_obs; `is_broken`: it is above its bound."""
    lines = []
    for run, one in study.runs.iterrows():
        recorded = one["summary"].get("regret")
        found = recorded if isinstance(recorded, dict) else {}
        keys = [key for key in ("measured", "bound", "mu") if key != "bound" or found.get(key)]
        if all(type(found.get(key)) in (int, float) and math.isfinite(found[key]) for key in keys):
            numbers = {key: found.get(key) for key in ("measured", "bound", "mu")}
            lines.append({"run": run, "row": one["row"], "seed": one["seed"], **numbers})
    frame = pd.DataFrame(lines, columns=["run", "row", "seed", "measured", "bound", "mu"])
    frame = frame.astype({"measured": float, "bound": float})
    return frame.assign(is_broken=frame["measured"] > frame["bound"] + ROUNDING)


def total_seconds(spent: Mapping[str, float]) -> float:
    """From start to end; of a run that could not write it down, the parts that it did."""
    return spent.get("total", sum(v for part, v in spent.items() if part != "adversary"))


def compute(study: Study) -> Table:
    """A line for each method and device, in the order of the table: how many runs are finished and
    not, seconds of all; `complete`: every run has written down its times."""
    runs = pd.concat([study.runs, study.twice, study.unfinished])
    runs = runs[runs["data"].notna()]
    has_end = runs.index.isin(study.records.measurements["run"])
    frame = pd.DataFrame(
        {
            "method": runs["label"],
            "device": runs["device"],
            "finished": has_end.astype(int),
            "unfinished": (~has_end).astype(int),
            "seconds": runs["seconds"].map(total_seconds),
            **{part: [one.get(part, 0.0) for one in runs["seconds"]] for part in SPENT},
            "complete": ["total" in one for one in runs["seconds"]],
        }
    )
    groups = frame.groupby(["method", "device"], sort=False)
    raw = groups.sum().assign(complete=groups["complete"].all()).reset_index()
    shown = raw[["method", "device", "finished", "unfinished"]].astype(str)
    at_least = raw["complete"].map({True: "", False: "≥ "})
    shown["total [s]"] = at_least + raw["seconds"].map("{:.1f}".format)
    for part in SPENT:
        shown[f"{part} [s]"] = raw[part].map("{:.1f}".format)
    caption = (
        "Seconds over all runs, failed and unfinished ones included; training includes the "
        "adversary's part. ≥: not every run wrote its times down."
    )
    raw["complete"] = raw["complete"].map({True: "yes", False: "no"})
    return Table("compute", raw, shown, caption, texts=["device"])


def missing(study: Study) -> Table | None:
    """For every row the seeds that some row on these domains has and this one lacks, why, and the
    command that would run them; then unfinished runs of configurations that have no row."""
    has_numbers = study.unfinished.index.isin(study.records.measurements["run"])
    lost = study.unfinished[~has_numbers]  # nothing is wrong with the others
    seeds = pd.Series({one.run: seed_of(one) for one in lost.itertuples()}, dtype=object)
    wanted = sorted({*study.runs["seed"], *seeds.dropna()})
    lines, with_row = [], set()
    for row, runs in study.runs.groupby("row", sort=False):
        with_row |= {*unfinished_of(study, runs).index}
        own = lost.loc[lost.index.intersection(unfinished_of(study, runs).index)]
        by_seed = {seeds[one.run]: one for one in own.itertuples()}
        for seed, one in sorted(by_seed.items(), key=lambda item: str(item[0])):
            if seed is not None and seed not in {*runs["seed"]}:
                source = runs.iloc[0] if pd.isna(one.data) else lost.loc[one.Index]
                lines.append(again(str(row), one, source, seed))
        never = [s for s in wanted if s not in {*runs["seed"]} and s not in by_seed]
        if never:
            command = command_for(runs.iloc[0], never)
            named = ", ".join(map(str, never))
            lines.append({"row": row, "seeds": named, "reason": "not run", "command": command})
    for one in lost[~lost.index.isin(with_row) & lost["data"].notna()].itertuples():
        source = lost.loc[one.Index]
        lines.append(again(lost_label(study, source), one, source, one.seed))
    if not lines:
        return None
    shown = pd.DataFrame(lines)
    texts = ["seeds", "reason", "command"]
    return Table("missing runs", pd.DataFrame(), shown, texts=texts, code=["command"])


def lost_label(study: Study, run: Frame) -> str:
    """Of a run without a row: its method, and what sets it apart from the rows of it."""
    settings = settings_of(run)
    alike = study.rows[study.rows["label"] == run["label"]]
    keys = [key for key in differing([settings, *alike["settings"]]) if key != FINGERPRINT]
    return f"{run['label']} {describe(settings, keys)}".strip()


def again(label: str, lost: Any, source: Frame, seed: int) -> dict[str, str]:
    """The line of one run that is to be run again; with force=true where it says that it is
    finished."""
    command = command_for(source, [seed], force=lost.status == "finished")
    return {"row": label, "seeds": str(seed), "reason": lost.reason, "command": command}


def command_for(run: Frame, seeds: Sequence[int], *, force: bool = False) -> str:
    """ "robustmd train -m data=digits method=opt seed=3,4", or why there is none.

    From the overrides that the run wrote down; where it wrote none, every setting of its
    config.yaml that can change a number is named.
    """
    try:
        found = rerun.overrides(run["config"], run["environment"], seeds=seeds)
    except Unreadable as reason:
        return f"not known: {reason}"
    many = ["-m"] if len(seeds) > 1 else []
    return rerun.command([*many, *found, *(["force=true"] * force)])


def further(study: Study) -> Table | None:
    """Metrics beside loss and accuracy, of rows whose every run measured them on its test sets."""
    test = study.values.xs("test", axis=1, level=1)
    raw, shown = [], []
    measured = [name for name in test.columns.unique(1) if name not in ("loss", "accuracy")]
    for name in sorted(measured):
        for row in study.rows.index:
            own = {m.name: m for m in further_metrics(study.rows.loc[row, "summary"])}
            values = test.xs(name, axis=1, level=1).loc[row]
            domains = values[study.domains]
            if name not in own or domains.isna().all(axis=1).any():
                continue
            metric, n = own[name], len(values)
            first = {"method": row, "n": n, "metric": name, "unit": metric.unit}
            numbers: dict[str, float] = {}
            texts: dict[str, str] = {}
            for where in [*study.domains, "worst"]:
                both = mean_and_spread(where, values[where], study.spread)
                numbers |= both
                shown_as = "WORST" if where == "worst" else where
                texts[shown_as] = with_spread(metric, *both.values())
            raw.append(first | numbers)
            kept = ["WORST"] if study.is_many else texts
            shown.append(first | {"n": str(n)} | {where: texts[where] for where in kept})
    if not raw:
        return None
    measured_too = "loss" if study.accuracy == "loss" else "loss and accuracy"
    caption = (
        f"{study.data}: what runs measured beside {measured_too}, on the test sets; "
        f"mean ± {statistics.SPREADS[study.spread]}; WORST: the worst domain within each run. "
        f"Every value is of {study.rule.words}."
    )
    frames = pd.DataFrame(raw), pd.DataFrame(shown)
    return Table("further metrics", *frames, caption, texts=["metric", "unit"], file="metrics")


def settings(study: Study) -> Table:
    """A line for each row, a column for each setting in which they differ."""
    keys = differing(study.rows["settings"])
    shown = pd.DataFrame({"row": study.rows.index})
    names = [
        ", ".join(dict.fromkeys(one or NOTHING for one in own["experiment"]))
        for _, own in study.runs.groupby("row", sort=False)
    ]
    if len({*names}) > 1:
        shown["experiment"] = names
    for key in keys:
        shown[short_key(key)] = [value_of(one, key) for one in study.rows["settings"]]
    return Table("settings that differ", pd.DataFrame(), shown, texts=[*shown])


def runs_csv(study: Study) -> Frame:
    """From a mean back to metrics.csv: one line for each run, the values that the mean is of, and
    the iterations whose measurements they are."""
    names = quantities(study)
    values = study.values.reindex(columns=names)
    places = study.runs.set_index(["row", "seed"])["run"]
    at = study.selected.index.to_frame(index=False).groupby(["run", "split"])["iteration"]
    iterations = at.agg(lambda times: " ".join(map(str, times)))
    lines = []
    for (row, seed), line in zip(
        values.index, values.itertuples(index=False, name=None), strict=True
    ):
        own = row.removesuffix(f" {AVERAGED_WORD}")
        run, split = places[own, seed], "test" if own == row else "test_averaged"
        found = {"path": run, "method": row, "seed": seed, "iterations": iterations[run, split]}
        found |= {"_".join(name): value for name, value in zip(names, line, strict=True)}
        if study.is_many:
            found["worst_domain"] = study.worst_domains[run, split]
        warnings = lines_of(study.runs.loc[run, "summary"], "warnings")
        lines.append(found | {"warnings": "; ".join(warnings)})
    return pd.DataFrame(lines)


def domains_csv(study: Study) -> Frame:
    """Losses and accuracies [percent] of each domain; `worst_in`: in how many runs it has the
    lowest test accuracy, or largest loss; `weight_mean`: of p_k after the last update, over the
    runs that recorded it. Unseen domains come last, named as such."""
    kind, score = study.spread, study.accuracy
    measures = dict.fromkeys((s, m) for s in ("train", "test") for m in ("loss", score))
    domains = [(name, name) for name in study.domains]
    domains += [(f"{name} {UNSEEN}", f"unseen_{name}") for name in study.unseen]
    lines = []
    for row, values in study.values.groupby("row", sort=False):
        own = row.removesuffix(f" {AVERAGED_WORD}")
        runs = study.runs[study.runs["row"] == own]
        split = "test" if row == own else "test_averaged"
        counts = Counter(study.worst_domains[run, split] for run in runs.index)
        weights = mean_weights(runs)
        for shown, where in domains:
            line = {"method": row, "domain": shown, "n": len(values)}
            for name in measures:
                own_values = values.get((where, *name), pd.Series(np.nan, values.index))
                line |= mean_and_spread("_".join(name), own_values, kind)
            line["worst_in"] = counts[shown] if shown == where else None
            line["weight_mean"] = weights.get(shown) if shown == where else None
            lines.append(line)
    return pd.DataFrame(lines).astype({"worst_in": "Int64"})


def mean_weights(runs: Frame) -> Mapping[str, float]:
    """domain -> mean over runs of its weight after the last update, as far as summary.json has
    finite numbers."""
    recorded = [one.get("weights") for one in runs["summary"]]
    found = [one if isinstance(one, dict) else {} for one in recorded]
    kept = [
        {name: x for name, x in one.items() if isinstance(x, float) and math.isfinite(x)}
        for one in found
    ]
    return dict(pd.DataFrame(kept).mean())


def run_entries(study: Study) -> Table:
    """One line for each run directory, those that are in no row at the end."""
    labels: dict[str, str] = {}
    for row, runs in study.runs.groupby("row", sort=False):
        labels |= dict.fromkeys(unfinished_of(study, runs).index, row)
    runs = pd.concat([study.runs, study.unfinished, study.twice])
    fallback = runs["label"].fillna(NOTHING)
    named = [labels.get(run, row) for run, row in fallback.items()]
    in_row = runs["row"].notna() if "row" in runs else False
    spent = [one if isinstance(one, dict) else {} for one in runs["seconds"]]
    shown = pd.DataFrame(
        {
            "run": runs["row"].where(in_row, named),
            "seed": [str(seed_of(one)) for one in runs.itertuples()],
            "experiment": runs["experiment"].fillna("").replace("", NOTHING),
            "status": runs["status"].fillna("unknown"),
            "seconds": [seconds_text(total_seconds(one)) if one else NOTHING for one in spent],
            "device": runs["device"].fillna(NOTHING),
            "files": runs["run"],
            "why": runs["reason"],
        }
    )
    if (shown["experiment"] == NOTHING).all():
        shown = shown.drop(columns="experiment")
    texts = [name for name in shown if name != "seconds"]
    return Table(f"runs of {study.data}", pd.DataFrame(), shown, texts=texts, code=["files"])
