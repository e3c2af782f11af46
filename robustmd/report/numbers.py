"""From measurements to one value for each run and quantity: which measurements, over which domains.

A quantity is a column of `Study.values`: (where, split, metric), as ("worst", "test", "accuracy").
The worst domain is taken within each measurement, f_w(t) = max_k f_k(W_t), then the selected
measurements of a run are averaged, and only then the runs: domains (80, 90) and (90, 80) give a
worst of 80. No rule of selection looks at the test set.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from robustmd.config.identity import NUMBER_CHANGING, canonical, places_of
from robustmd.config.paths import names_weights
from robustmd.config.settings import OPTIONS, SECTIONS, defaults_of
from robustmd.metrics import REDUCERS, BestBy
from robustmd.registry import METHODS, METRICS, Metric, baselines
from robustmd.report import statistics
from robustmd.runs.records import Frame, Records, read_weights
from robustmd.runs.run import CROSS_ENTROPY, LossName

WORST_LOSS = BestBy.of("worst_loss")
SELECTIONS = {
    "final": "the final measurement (after the last iteration)",
    "last40": "the mean of the measurements in the last 40 % of the run",
    "best-val": "the measurement with the smallest worst-case validation loss",
}
AVERAGED = "_averaged"  # ends the splits that a run measured W̄ on, the mean of its iterates
AVERAGED_WORD = "(averaged)"
NO_NUMBER = tuple(f"evaluation.{key}" for key in ("predictions", "metrics", "keep", "best_by"))
FINGERPRINT = "data fingerprint"
FILES = "data.files"  # the fingerprint too, where the settings name the files
UNSET = "unset"
SYMBOLS = {"method.lam": "λ", "method.mu": "μ", "method.nu": "ν"}
MOST_KEYS = 3  # in the name of a row; "How the rows differ" has all
# Three columns for each domain: eight make a table of 28, which a wide screen just holds, and eight
# lines are what one panel can tell apart without a colour seen twice.
MOST_NAMED = 8
Quantity = tuple[str, str, str]  # where, split, metric
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Rule:
    """Which measurements every number is of; `by`: what best-val goes by, on validation."""

    name: str = "last40"
    by: BestBy = WORST_LOSS

    @property
    def words(self) -> str:
        """For a caption: what every value is of."""
        if self.name == "best-val" and self.by != WORST_LOSS:
            over = self.by.reducer.replace("_", " ")
            return f"the measurement with the best {over} validation {self.by.metric}"
        return SELECTIONS[self.name]

    @property
    def lacking(self) -> str:
        """Why a run is left out that the rule can say nothing of."""
        lacks, more = "", ""
        if self.by.metric not in ("loss", "accuracy"):
            lacks = f" with {self.by.metric}"
            more = f" evaluation.metrics=[{self.by.metric}]"
        return (
            f"--select best-val needs a validation split{lacks} and this run has none: train with "
            f"data.validation=0.1{more}, or choose another rule"
        )

    def select(self, measured: Frame, domains: Sequence[str], better: Any) -> Frame:
        """Those of `measured` that numbers are of, without runs that lack what it needs."""
        keys = measured.index.to_frame(index=False)
        keys["averaged"] = keys["split"].str.endswith(AVERAGED)
        if self.name != "best-val":
            last = keys.groupby(["run", "split"])["iteration"].transform("max")
            # of t ≥ 3/5 T; the untrained model is in no mean
            begin = 5 * last if self.name == "final" else 3 * last
            is_chosen = (keys["iteration"] > 0) & (5 * keys["iteration"] >= begin)
            return measured[is_chosen.to_numpy()]
        if self.by.metric not in measured:
            return measured[:0]
        # argmin on validation, the earliest of equals, where all splits were measured
        model = ["run", "averaged"]
        count = keys.groupby([*model, "iteration"])["split"].transform("nunique")
        whole = count == keys.groupby(model)["split"].transform("nunique")
        values = measured[self.by.metric].reindex(columns=domains).to_numpy(float)
        keys["cost"] = self.by.cost(values, better(self.by.metric))
        is_val = keys["split"].str.startswith("val") & whole & (keys["iteration"] > 0)
        known = keys[is_val & np.isfinite(keys["cost"])]
        best = known.loc[known.groupby(model)["cost"].idxmin()].set_index(model)["iteration"]
        chosen = best.reindex(pd.MultiIndex.from_frame(keys[model])).to_numpy()
        has_last = keys["run"].isin(known["run"][~known["averaged"]])
        return measured[((keys["iteration"] == chosen) & has_last).to_numpy()]


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """All runs on the same domains of one data set: one table, one folder of the report.

    `runs` have a `row`, `settings` and a `configuration`; `unfinished` are the others on these
    domains, with the reason; `twice` those whose configuration and seed are in it already.
    `selected`: [(run, split, iteration), (metric, domain)], what the numbers are of, of `measured`.
    `asked`: the method to compare with. `rule` and `spread` hold for every number of it.
    """

    data: str
    folder: str
    domains: list[str]
    unseen: list[str]
    loss: LossName
    records: Records
    runs: Frame
    unfinished: Frame
    twice: Frame
    measured: Frame
    selected: Frame
    rule: Rule
    spread: str = "std"
    asked: str | None = None

    @property
    def title(self) -> str:
        """ "digits: mnist, svhn"."""
        return f"{self.data}: {domains_text(self.domains)}"

    @property
    def is_many(self) -> bool:
        """Whether the domains are summarised, and the worst one is named."""
        return len(self.domains) > MOST_NAMED

    @property
    def accuracy(self) -> str:
        """What a method is judged by; the loss where labels are numbers."""
        return "loss" if self.loss.targets == "numbers" else "accuracy"

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """Those of the runs, as they recorded them: code that one came from may not be here."""
        found = dict(METRICS.items()) | {"loss": replace(METRICS["loss"], unit=self.loss.unit)}
        for summary in self.runs["summary"]:
            for one in further_metrics(summary):
                found.setdefault(one.name, one)
        return found

    @cached_property
    def by_run(self) -> Frame:
        """[(run, split), quantity without split], the mean over the selected measurements."""
        columns: dict[tuple[str, str], Any] = {}
        sizes = self.sizes.reindex(self.selected.index.get_level_values("run")).to_numpy()
        for metric in self.selected.columns.unique("metric").drop("examples"):
            by_domain = self.selected[metric]
            trained = by_domain.reindex(columns=self.domains)
            values = trained.to_numpy(float)
            better = self.metrics[metric].better if metric in self.metrics else "smaller"
            columns |= {(name, metric): trained[name] for name in self.domains}
            columns |= {(over, metric): REDUCERS[over](values, better) for over in REDUCERS}
            columns["adjusted", metric] = (values * sizes).sum(axis=1) / sizes.sum(axis=1)
            unseen = by_domain.reindex(columns=self.unseen)
            columns |= {(f"unseen_{name}", metric): unseen[name] for name in self.unseen}
            if len(self.unseen) > 1:
                columns["unseen_worst", metric] = REDUCERS["worst"](unseen.to_numpy(float), better)
        return pd.DataFrame(columns, self.selected.index).groupby(["run", "split"]).mean()

    @cached_property
    def values(self) -> Frame:
        """[(row, seed), (where, split, metric)]; the averaged model, W̄ = (1/T) Σ_t W_t (Alg. 1
        returns it), has a row of its own where all runs of a row measured it."""
        is_average = self.by_run.index.get_level_values("split").str.endswith(AVERAGED)
        models = []
        for own in (self.by_run[~is_average], self.by_run[is_average]):
            plain = own.rename(lambda split: split.removesuffix(AVERAGED), level="split")
            wide = plain.unstack("split")
            models.append(wide.set_axis(wide.columns.swaplevel(1, 2), axis=1))
        last, averaged = models
        parts = {}
        for row, runs in self.runs.groupby("row", sort=False):
            parts[row] = last.loc[runs.index].set_axis(runs["seed"])
            own = averaged.reindex(runs.index)
            both = [("worst", split, "loss") for split in ("train", "test")]
            if own.reindex(columns=both).notna().all(axis=None):
                parts[f"{row} {AVERAGED_WORD}"] = own.set_axis(runs["seed"])
        return pd.concat(parts, names=["row", "seed"]).sort_index(axis=1)

    @cached_property
    def sizes(self) -> Frame:
        """[run, domain]: n_k, the training examples of each domain."""
        return self.last("train", "examples")

    def last(self, split: str, metric: str) -> Frame:
        of_split = self.measured.xs(split, level="split")[metric][self.domains]
        return of_split.groupby("run").last()

    @cached_property
    def tested(self) -> Frame:
        """[(run, split), domain]: how many examples were measured, the fewest of a run."""
        return self.selected["examples"].reindex(columns=self.domains).groupby(RUN).min()

    @cached_property
    def worst_domains(self) -> Frame:
        """(run, split) -> argmin_k Acc_k, the first of equals; argmax_k f_k of numbers."""
        by_domain = self.by_run.xs(self.accuracy, axis=1, level=1)[self.domains]
        is_loss = self.accuracy == "loss"
        return by_domain.idxmax(axis=1) if is_loss else by_domain.idxmin(axis=1)

    def resolution(self, quantity: Quantity, runs: Iterable[str]) -> float:
        """What one test example more or less changes in any of these runs [points]; 0 for a loss,
        which is continuous. Of a mean: the example that changes it most."""
        where, split, metric = quantity
        if self.metrics[metric].unit != "%":
            return 0.0
        steps = []
        for run in runs:
            sizes = self.tested.loc[(run, split)]
            if where == "mean":
                steps.append(100 / len(self.domains) / sizes.min())
            else:
                domain = self.worst_domains[run, split] if where == "worst" else where
                steps.append(100 / sizes[domain])
        return max(steps)

    @cached_property
    def rows(self) -> Frame:
        """The first run of each row, in the order of the table."""
        return self.runs.drop_duplicates("row").set_index("row", drop=False)

    @property
    def mixtures(self) -> Frame:
        return self.rows[self.rows["domain"].isna()]

    @property
    def individuals(self) -> Frame:
        return self.rows[self.rows["domain"].notna()]

    @property
    def baseline(self) -> str:
        """The method that the others are compared with; where none was run, the first."""
        names = baselines()
        found = (name for name in names if len(self.baseline_rows(name)))
        return self.asked or next(found, names[0])

    def baseline_rows(self, method: str) -> Frame:
        """Those that others may be compared with as `method`; one of `baselines()` has no prior
        then: even is the one of equal weights."""
        of_method = self.rows[self.rows["method"] == method]
        if method not in baselines():
            return of_method
        return of_method[[one.get("method.prior") is None for one in of_method["settings"]]]

    @cached_property
    def references(self) -> dict[str, str]:
        """row -> the baseline's row that was trained on the same data in the same way, of several
        the first; nothing for that row itself."""
        first: dict[str, str] = {}
        for row, one in self.baseline_rows(self.baseline).iterrows():
            first.setdefault(ground(one["settings"]), str(row))
        pairs = {row: first.get(ground(one["settings"])) for row, one in self.mixtures.iterrows()}
        return {row: other for row, other in pairs.items() if other not in (None, row)}

    @cached_property
    def comparisons(self) -> Frame:
        """Every mixture against its reference, see `tables.differences`, with the quantity's
        `name`, whether it is the `price`, what is `better`, and the `resolution`; empty where there
        is none."""
        score, lines = self.accuracy, []
        split_words = {"train": "training", "test": "test"}
        for row, reference in self.references.items():
            theirs = self.values.loc[reference]
            seeds = self.values.loc[row].index.intersection(theirs.index)
            if seeds.empty:
                continue
            price = ("mean", "test", score)
            words = f"mean test {score}"
            if not self.is_many:
                of_each = theirs.loc[seeds, [(name, "test", score) for name in self.domains]].mean()
                smaller = self.metrics[score].better == "smaller"
                price = of_each.idxmin() if smaller else of_each.idxmax()
                words = f"test {score} on {price[0]}, {self.baseline}'s best domain"
            for name in (("worst", "train", "loss"), ("worst", "test", score), price):
                is_price = name is price
                what = words if is_price else f"worst {split_words[name[1]]} {name[2]}"
                found = compared(self, row, reference, name)
                lines.append({**found, "quantity": what, "price": is_price})
        found = pd.DataFrame(lines)
        return found if found.empty else statistics.with_verdicts(found)

    @cached_property
    def weights(self) -> dict[str, Frame]:
        """run -> p_t by iteration, of the mixtures."""
        mixtures = self.runs[self.runs["domain"].isna()]
        return {
            str(run): read_weights(self.records.outputs, one) for run, one in mixtures.iterrows()
        }


RUN = ["run", "split"]


def studies(
    records: Records, rule: Rule, spread: str, asked: str | None = None
) -> tuple[list[Study], Frame]:
    """One for each data set, domains and loss, rows in the paper's order; and the runs that are in
    no row: not finished, there twice, or such that the rule can say nothing of them.

    Of two runs with the same configuration and seed the first path counts, so that n counts seeds.
    """
    runs = records.runs.copy()
    known = runs["data"].notna()
    named = pd.Series(index=runs.index, dtype=object)
    for run, one in runs[known].iterrows():
        named[run] = settings_of(one)
    runs["settings"] = named
    runs["configuration"] = named[known].map(lambda one: hashed(one, FINGERPRINT))
    key = ["data", "unseen", "domains", "loss"]
    is_sound = runs["reason"] == ""
    taken: set[str] = set()
    found, left_out = [], [runs[~is_sound]]
    for (data, unseen, domains, loss), members in runs[is_sound].groupby(key):
        own = records.measurements[records.measurements["run"].isin(members.index)]
        measured = _wide(own, domains)
        metrics = {m.name: m for one in members["summary"] for m in further_metrics(one)}

        def better(metric: str, metrics: dict[str, Metric] = metrics) -> str:
            return (metrics.get(metric) or METRICS[metric]).better

        if rule.by.metric in {*metrics, *METRICS}:
            selected = rule.select(measured, domains, better)
        else:
            selected = measured[:0] if rule.name == "best-val" else rule.select(measured, (), None)
        has_any = members.index.isin(selected.index.unique("run"))
        lacking = members[~has_any].assign(reason=rule.lacking)
        rows = members[has_any].assign(whole=members[has_any]["settings"].map(hashed))
        left_out.append(lacking)
        if rows.empty:
            continue
        first = rows.groupby(["whole", "seed"])["run"].transform("first")
        twice = rows[rows["run"] != first].copy()
        twice["reason"] = "same configuration and seed as " + first[twice.index]
        left_out.append(twice)
        rows = rows[rows["run"] == first]
        lost = pd.concat([runs[~is_sound], lacking])
        in_table = pd.Series([tuple(one) for one in lost[key].itertuples(index=False)], lost.index)
        is_own = in_table == (data, unseen, domains, loss)
        is_own |= lost["data"].isna() & lost["parent"].isin(rows["parent"])
        lost = lost[is_own]
        words = [] if loss == CROSS_ENTROPY else [loss.words.removeprefix("mean ")]
        place = "-".join((data, *words, *(f"without-{name}" for name in unseen)))
        title = " ".join((data, *(f"({name})" for name in words)))
        title += f" (unseen: {some_text(unseen)})" if unseen else ""
        study = Study(
            data=title,
            folder=folder_name(place, taken),
            domains=list(domains),
            unseen=list(unseen),
            loss=loss,
            records=records,
            runs=_ordered(rows, lost, domains),
            unfinished=lost,
            twice=twice,
            measured=measured,
            selected=selected,
            rule=rule,
            spread=spread,
            asked=asked,
        )
        found.append(study)
    return found, pd.concat(left_out).sort_index()


def _wide(own: Frame, domains: Sequence[str]) -> Frame:
    """[(run, split, iteration), (metric, domain)] of the measurements that have every domain."""
    keys = ["run", "split", "iteration", "metric", "domain"]
    wide = own.set_index(keys)["value"].unstack(["metric", "domain"]).sort_index()
    return wide[wide["loss"][[*domains]].notna().all(axis=1)]


def _ordered(rows: Frame, lost: Frame, domains: Sequence[str]) -> Frame:
    """The runs in the order of the table, with `row`, its name, and `configurations`, how many of
    its method were run, unfinished ones included."""
    kind = ["method", "domain"]
    both = pd.concat([rows, lost[lost["data"].notna()]])
    both["domain"] = both["domain"].fillna("")
    counts = both.groupby(kind)["configuration"].nunique()

    def rank(one: Frame) -> tuple[object, ...]:
        place = domains.index(one["domain"]) if one["domain"] in domains else len(domains)
        lam = one["config"]["method"].get("lam")
        lam = float(lam) if isinstance(lam, int | float) else -1.0
        text = [(key, str(value)) for key, value in sorted(one["settings"].items())]
        return *METHODS.rank(one["method"]), place, lam, text

    first = rows.drop_duplicates("whole").set_index("whole", drop=False)
    order = sorted(first.index, key=lambda whole: rank(first.loc[whole]))
    names = row_names(first.loc[order])
    parts = [rows[rows["whole"] == whole].assign(row=names[whole]) for whole in order]
    found = pd.concat([part.sort_values("seed") for part in parts])
    pairs = zip(found["method"], found["domain"].fillna(""), strict=True)
    return found.assign(configurations=[int(counts[pair]) for pair in pairs])


def row_names(first: Frame) -> dict[Any, str]:
    """index -> "opt λ=0.1": the method, what sets it apart from others of its method, and what of
    data and training is not the same in all rows; of more than `MOST_KEYS` keys by the first and a
    number."""
    kinds = list(zip(first["method"], first["domain"].fillna(""), strict=True))
    of_protocol = differing(protocol(one) for one in first["settings"])
    names = {}
    for index, settings, label, kind in zip(
        first.index, first["settings"], first["label"], kinds, strict=True
    ):
        alike = [i for i, other in zip(first.index, kinds, strict=True) if other == kind]
        of_method = differing(first["settings"][alike])
        keys = [key for key in of_method if key not in of_protocol] + of_protocol
        name = " ".join((label, describe(settings, keys[:MOST_KEYS]))).strip()
        if len(keys) > MOST_KEYS:
            name += f" … ({1 + alike.index(index)})" if len(alike) > 1 else " …"
        names[index] = name
    return names


def compared(study: Study, row: str, reference: str, name: Quantity) -> dict[str, Any]:
    """One method against another, in one quantity, over the seeds that both have, at least one."""
    ours, theirs = study.values[name][row].dropna(), study.values[name][reference].dropna()
    seeds = ours.index.intersection(theirs.index)
    metric = study.metrics[name[2]]
    pair = study.runs[study.runs["row"].isin([row, reference]) & study.runs["seed"].isin(seeds)]
    step = study.resolution(name, pair.index)
    mean, percent = float(theirs[seeds].mean()), metric.unit == "%"
    return {
        "method": row,
        "reference": reference,
        "name": name,
        "unit": "points" if percent else metric.unit,
        "better": metric.better,
        **statistics.difference((ours[seeds] - theirs[seeds]).to_numpy(), step),
        "seeds": " ".join(map(str, seeds)),
        "reference_mean": mean,
        "margin": statistics.margin(mean, percent=percent),
        "resolution": step,
    }


def settings_of(run: Frame) -> dict[str, Any]:
    """{"method.lam": 0.1, …}: all that can change a number but the seed, and the data's bytes.

    Numbers are floats (0 is 0.0), lists text. A key that the run does not have, because it is older
    than the key, has its recorded default.
    """
    config, environment = run["config"], run["environment"]
    flat: dict[str, Any] = {}
    for group in NUMBER_CHANGING:
        chosen = config.get(group, {})
        name = chosen.get("name") if isinstance(chosen, Mapping) else None
        flat |= _flat(canonical(chosen), group)
        for key, default in _recorded_defaults(group, str(name)).items():
            flat.setdefault(key, default)
    if run["domain"] is not None:
        flat["method.domain"] = run["domain"]
    runtime = config.get("runtime")
    precision = runtime.get("precision") if isinstance(runtime, Mapping) else None
    flat["runtime.precision"] = str(precision or "fp32")
    flat[FINGERPRINT] = str(environment.get("data_fingerprint", "unknown"))
    # what files held in place of where they lay: the same elsewhere is the same configuration
    places = [f"data.{key}" for key in places_of(str(flat.get("data.name")))]
    left_out = {*NO_NUMBER}
    if environment.get("data_fingerprint") and any(flat.get(key) for key in places):
        flat |= {FILES: flat[FINGERPRINT], FINGERPRINT: f"that of {FILES}"}
        left_out |= {*places}
    weights = environment.get("weights_sha256")
    if weights and not names_weights(str(flat.get("backbone.weights", "none"))):
        flat["backbone.weights"] = f"sha256 {weights}"[:20]
    return {key: value for key, value in flat.items() if key not in left_out}


@functools.cache
def _recorded_defaults(group: str, name: str) -> Settings:
    """Of one option of a group, or of a section; nothing for names that are not ours."""
    schema = OPTIONS[group].get(name) if group in OPTIONS else SECTIONS.get(group)
    return {} if schema is None else _flat(canonical(defaults_of(schema)), group)


def _flat(value: Any, prefix: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        parts = (_flat(inner, f"{prefix}.{key}") for key, inner in value.items())
        return {key: inner for part in parts for key, inner in part.items()}
    # repr tells True from 1.0 and keeps a list hashable
    return {prefix: value if isinstance(value, str | float | None) else repr(value)}


def protocol(settings: Settings, *more: str) -> dict[str, Any]:
    """What two methods must share to be compared: all but the method itself, how often and on how
    much of the training set it was measured before the end, and the keys `more`."""
    apart = ("method.", "evaluation.")
    return {k: v for k, v in settings.items() if not k.startswith(apart) and k not in more}


def ground(settings: Settings, *more: str) -> str:
    """`protocol`, to be compared."""
    return hashed(protocol(settings, *more))


def hashed(settings: Settings, *left_out: str) -> str:
    """The settings without those keys, to be compared."""
    return repr(sorted((key, settings[key]) for key in settings.keys() - {*left_out}))


def differing(many: Iterable[Settings]) -> list[str]:
    """Keys that have not the same value everywhere, in order of first appearance."""
    settings = list(many)
    keys = dict.fromkeys(key for one in settings for key in one)
    return [key for key in keys if len({one.get(key, UNSET) for one in settings}) > 1]


def describe(settings: Settings, keys: Iterable[str]) -> str:
    """ "λ=0.1 momentum=0" for the keys given."""
    pairs = ((short_key(key), value_of(settings, key)) for key in keys)
    return " ".join(f"{key}={value}" for key, value in pairs)


def short_key(key: str) -> str:
    """The key as a label shows it: "λ", "iterations", "data.validation"."""
    group, _, rest = key.partition(".")
    return SYMBOLS.get(key, rest if group in ("method", "training") else key)


def value_of(settings: Settings, key: str) -> str:
    """The value likewise, as the command line has it; of a fingerprint the first 8 digits."""
    value = settings.get(key, UNSET)
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)[:8] if key in (FINGERPRINT, FILES) else str(value)


def further_metrics(summary: Mapping[str, Any]) -> list[Metric]:
    """What summary.json says of the metrics that the run measured beside loss and accuracy, as far
    as it is sound; the module that one came from is not imported."""
    recorded = summary.get("metrics")
    metrics = []
    for name, about in recorded.items() if isinstance(recorded, dict) else ():
        found = about if isinstance(about, dict) else {}
        unit, better, decimals = (found.get(key) for key in ("unit", "better", "decimals"))
        if isinstance(unit, str) and better in ("smaller", "larger") and decimals in range(7):
            # `of` is not looked at: a report measures nothing
            like = replace(METRICS["loss"], name=name, unit=unit, better=better)
            metrics.append(replace(like, decimals=int(decimals or 0)))
    return metrics


def folder_name(data: str, taken: set[str]) -> str:
    """The data set's name as a folder's, never twice and never out of the report."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in data)
    stem = plain.strip(".")[:80] or "data"
    several = (stem, *(f"{stem}-{i}" for i in range(2, len(taken) + 3)))
    name = next(name for name in several if name.lower() not in taken)
    taken.add(name.lower())
    return name


def domains_text(domains: Sequence[str]) -> str:
    """ "mnist, svhn"; "1,000 domains, rotate_0_sigma_0 to rotate_352.8_sigma_76" of many."""
    if len(domains) <= MOST_NAMED:
        return ", ".join(domains)
    return f"{len(domains):,} domains, {domains[0]} to {domains[-1]}"


def some_text(names: Sequence[str]) -> str:
    """ "a, b, c" of at most `MOST_NAMED`; "a, b, c and 37 more" of more."""
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3:,} more"
