"""From single runs to the rows of a table: runs that differ only in the seed are one group."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from robustmd.registry import METHODS, baselines
from robustmd.report.estimate import Estimate, SpreadKind, estimate
from robustmd.report.names import clean, domains_text, some_text
from robustmd.report.quantities import Quantity
from robustmd.report.selection import AVERAGED, Selected, Selection
from robustmd.report.settings_key import FINGERPRINT, Settings, describe, differing, settings_of
from robustmd.runs.run import CROSS_ENTROPY, LossName, Problem, Run

AVERAGED_WORD = "(averaged)"
MOST_KEYS = 3  # in the name of a row; "How the rows differ" has all
# of a table: data set, unseen, the others, the loss
_Key = tuple[str, tuple[str, ...], tuple[str, ...], LossName]


@dataclass(frozen=True)
class Group:
    """Runs of one configuration, one for each seed. `label` tells it from those beside it.

    `selected`: what of each run the numbers are of. `configurations`: how many of this method (for
    an individual model: and domain) were run on these domains, unfinished runs included.
    `unfinished`: runs of this configuration that are not among `runs`, with the reason; `said`:
    what else must be known of them.
    """

    label: str
    method: str
    domain: str | None
    settings: Settings
    selected: tuple[Selected, ...]
    configurations: int = 1
    unfinished: tuple[Problem, ...] = ()
    said: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(one.run for one in self.selected)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(one.run.seed for one in self.selected)

    def by_seed(self, quantity: Quantity) -> dict[int, float]:
        """The quantity's value in the run of each seed."""
        return {one.run.seed: quantity.of(one) for one in self.selected}

    def estimate(self, quantity: Quantity) -> Estimate:
        """Mean and spread of the quantity over this group's seeds."""
        return estimate(self.by_seed(quantity).values())

    def beside(self, other: "Group", quantity: Quantity) -> dict[int, tuple[float, float]]:
        """{seed: (ours, theirs)} of the seeds that both have."""
        ours, theirs = self.by_seed(quantity), other.by_seed(quantity)
        return {seed: (ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())}


@dataclass(frozen=True)
class Section:
    """All groups over the same domains of one data set: one table. `folder` is fit for a path.

    `unseen`: the domains that all of them kept out of training; `data` names them. `unfinished`:
    the runs on these domains that are in no group's `runs`, with the reason; `twice`: those whose
    configuration and seed are in it already. `asked`: the method to compare with; None: the first
    of `baselines()` that was run. `selection` and `spread` (what stands behind ±) hold for every
    number of it.
    """

    data: str
    folder: str
    domains: tuple[str, ...]
    groups: tuple[Group, ...]
    unfinished: tuple[Problem, ...] = ()
    unseen: tuple[str, ...] = ()
    twice: tuple[Problem, ...] = ()
    asked: str | None = None
    selection: Selection = Selection()
    spread: SpreadKind = "std"

    @property
    def title(self) -> str:
        """ "digits: mnist, svhn"."""
        return f"{self.data}: {domains_text(self.domains)}"

    @property
    def baseline(self) -> str:
        """The method that the others are compared with; where none was run, the first."""
        names = baselines()
        found = (name for name in names if any(is_baseline(g, name) for g in self.groups))
        return self.asked or next(found, names[0])

    @property
    def mixtures(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.domain is None)

    @property
    def individuals(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.domain is not None)

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for group in self.groups for run in group.runs)

    @property
    def loss(self) -> LossName:
        """What the losses are, the same in all runs."""
        return self.runs[0].loss_name


def measured_as(
    group: Group, columns: Sequence[Quantity]
) -> list[tuple[str, tuple[Quantity, ...]]]:
    """(label, what stands in the columns): the last model, and where all runs measured it the
    averaged one, W̄ = (1/T) Σ_t W_t (Alg. 1 returns it)."""
    rows = [(group.label, tuple(columns))]
    wanted = {f"{split}{AVERAGED}" for split in ("train", "test")}
    if all(wanted <= {*one.splits} for one in group.selected):
        of_average = (replace(one, split=one.split + AVERAGED) for one in columns)
        rows.append((f"{group.label} {AVERAGED_WORD}", tuple(of_average)))
    return rows


def is_baseline(group: Group, method: str) -> bool:
    """Whether others may be compared with it as `method`; one of `baselines()` has no prior then:
    even is the one of equal weights."""
    has_prior = group.settings.get("method.prior") is not None
    return group.method == method and not (has_prior and method in baselines())


def sections(
    runs: Iterable[Run], selection: Selection | None = None, problems: Iterable[Problem] = ()
) -> tuple[tuple[Section, ...], tuple[Problem, ...]]:
    """Tables by data set and domains, groups in the paper's order; and the runs left out: those
    that are there twice, and those that the selection rule can say nothing of.

    Of two runs with the same configuration and seed the first path counts, so that n counts seeds.
    `runs` are finished and sound; unfinished ones among the `problems` are kept beside the rows.
    """
    rule = selection or Selection()
    left_out: list[Problem] = []
    by_table: dict[_Key, list[Selected]] = defaultdict(list)
    table_in: dict[Path, _Key] = {}  # of one configuration each: a broken run belongs to its
    for run in sorted(runs, key=lambda one: one.path):
        selected = rule.select(run)
        if selected is None:
            left_out.append(Problem(run.path, rule.lacking, "run", run))
        else:
            by_table[table_of(run)].append(selected)
            table_in[run.path.parent] = table_of(run)
    lost: dict[_Key | None, list[Problem]] = defaultdict(list)
    for problem in (*problems, *left_out):
        if problem.scope == "run":
            known = table_in.get(problem.path.parent)
            lost[table_of(problem.run) if problem.run else known].append(problem)
    folders: set[str] = set()
    found: list[Section] = []
    for key, members in sorted(by_table.items(), key=lambda item: item[0]):
        data, unseen, domains, loss = key
        unfinished = tuple(lost[key])
        groups, repeated = _groups(members, domains, unfinished)
        left_out += repeated
        own = [] if loss == CROSS_ENTROPY else [loss.words.removeprefix("mean ")]
        place = "-".join((data, *own, *(f"without-{name}" for name in unseen)))
        named = " ".join((data, *(f"({name})" for name in own)))
        named += f" (unseen: {some_text(unseen)})" if unseen else ""
        named_by = clean(named), folder_name(place, folders), domains
        found.append(Section(*named_by, groups, unfinished, unseen, repeated, selection=rule))
    return tuple(found), tuple(left_out)


def seed_of(problem: Problem) -> int | None:
    """Of a run that is left out; from its folder's name where its files do not say."""
    if problem.run is not None:
        return problem.run.seed
    named = re.fullmatch(r"seed=(\d{1,15})", problem.path.name)
    return int(named[1]) if named else None


def table_of(run: Run) -> _Key:
    """What runs of one table share; tables without unseen domains come first."""
    return run.data, run.unseen, run.domains, run.loss_name


def _groups(
    chosen: Sequence[Selected], domains: Sequence[str], unfinished: Sequence[Problem]
) -> tuple[tuple[Group, ...], tuple[Problem, ...]]:
    by_settings: dict[Settings, dict[int, Selected]] = defaultdict(dict)
    twice: list[Problem] = []
    for one in chosen:
        first = by_settings[settings_of(one.run)].setdefault(one.run.seed, one).run
        if first is not one.run:
            reason = f"same configuration and seed as {first.place}"
            twice.append(Problem(one.run.path, reason, "run", one.run))
    # Unfinished runs may not have written down what they read, or not even what they are.
    lost: dict[object, list[Problem]] = defaultdict(list)
    configurations = {_configuration(by_seed[min(by_seed)].run) for by_seed in by_settings.values()}
    for problem in unfinished:
        key = _configuration(problem.run) if problem.run else problem.path.parent
        lost[key].append(problem)
        configurations |= {key} if problem.run else set()  # type: ignore[arg-type]
    counts = Counter((method, domain) for method, domain, _ in configurations)
    groups = []
    for settings, by_seed in by_settings.items():
        members = tuple(by_seed[seed] for seed in sorted(by_seed))
        run = members[0].run
        keys = [_configuration(run), *dict.fromkeys(one.run.path.parent for one in members)]
        own = tuple(problem for key in keys for problem in lost.get(key, ()))
        count = counts[run.method, run.domain]
        groups.append(Group(run.label, run.method, run.domain, settings, members, count, own))
    groups.sort(key=lambda group: _rank(group, domains))
    return tuple(labelled(group, groups) for group in groups), tuple(twice)


def _configuration(run: Run) -> tuple[str, str | None, Settings]:
    return run.method, run.domain, settings_of(run).without(FINGERPRINT)


def labelled(group: Group, beside: Sequence[Group]) -> Group:
    """Named by its method, what sets it apart from others of its method, and what of data and
    training is not the same in all rows of the table; of more than `MOST_KEYS` keys by the first
    and a number."""
    same_kind = [g for g in beside if (g.method, g.domain) == (group.method, group.domain)]
    of_method = differing(g.settings for g in same_kind)
    of_protocol = differing(g.settings.protocol for g in beside)
    keys = [key for key in of_method if key not in of_protocol] + of_protocol
    label = " ".join((group.label, describe(group.settings, keys[:MOST_KEYS]))).strip()
    if len(keys) > MOST_KEYS:
        number = 1 + next(i for i, one in enumerate(same_kind) if one is group)
        label += f" … ({number})" if len(same_kind) > 1 else " …"
    return replace(group, label=clean(label))


def _rank(group: Group, domains: Sequence[str]) -> tuple[object, ...]:
    domain = domains.index(group.domain) if group.domain in domains else len(domains)
    lam = group.selected[0].run.lam
    text = [(key, str(value)) for key, value in sorted(group.settings.items())]
    return *METHODS.rank(group.method), domain, -1.0 if lam is None else lam, text


def folder_name(data: str, taken: set[str]) -> str:
    """The data set's name as a folder's, never twice and never out of the report."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in data)
    stem = plain.strip(".")[:80] or "data"
    several = (stem, *(f"{stem}-{i}" for i in range(2, len(taken) + 3)))
    name = next(name for name in several if name.lower() not in taken)
    taken.add(name.lower())
    return name
