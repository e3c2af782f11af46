"""The sweeper of `robustmd train`: an experiment's rows × its params are the runs.

    rows:          [{method: even}, {method: opt, method.lam: 0.3}]    settings that go together
    params:        {seed: "0,1,2"}                                     values for every row
    tune:          {configurations: 4, seed: 0, every_method: {…}}     rows drawn for every method
    leave_one_out: true                                                each domain unseen in turn

What is typed wins over `params`. Of what rows set, a typed value chooses the rows that have it.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

from robustmd.config.composing import as_typed
from robustmd.config.settings import GROUPS, SECTIONS, Config, leaves_of
from robustmd.config.typed import typed, unknown_key
from robustmd.errors import UserError, printable
from robustmd.runs.rerun import hydra_value
from robustmd.sweeping.draws import drawn_rows
from robustmd.sweeping.failures import RECORD
from robustmd.sweeping.picture import SIZE, run_title
from robustmd.sweeping.slots import processes

Row = Mapping[str, Any]


class RowsSweeper(Sweeper):
    """Hydra's sweeper of rows; hands one list of jobs to whichever launcher is chosen."""

    launcher: Launcher
    config: DictConfig

    def __init__(
        self, rows: Sequence[Row], params: Row, tune: Row | None, leave_one_out: bool
    ) -> None:
        self._rows, self._params, self._tune = map(_plain, (rows, params, tune))
        self._leave_one_out = leave_one_out

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Called by Hydra before `sweep`."""
        self.config, self.task_function = config, task_function
        self._loader = hydra_context.config_loader
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Run every job of the overrides that were typed, once none of them is refused.

        Raises SystemExit: some are, or they were only to be listed.
        """
        jobs = self.jobs(arguments)
        check = self.task_function.check  # type: ignore[attr-defined]
        refused: dict[str, list[int]] = {}
        for number, (job, composed) in enumerate(zip(jobs, self._composed(jobs), strict=True)):
            try:
                check(composed, as_typed(job))
            except UserError as error:
                refused.setdefault(str(error), []).append(number)
        if refused:
            raise SystemExit(_say_refused(refused, jobs))
        if self.task_function.listing:  # type: ignore[attr-defined]
            raise SystemExit(0)
        with self.recorded(len(jobs)):
            return self.launcher.launch(jobs, initial_job_idx=0)

    def _composed(self, jobs: Sequence[Sequence[str]]) -> Iterator[DictConfig]:
        """The config of each job. Hydra composes once for each choice of options; the values are
        put into a copy of that."""
        chosen: dict[tuple[str, ...], DictConfig] = {}
        for job in jobs:
            choices = tuple(text for text in job if text.partition("=")[0].lstrip("+") in GROUPS)
            if choices not in chosen:
                whole = self._loader.load_sweep_config(self.config, list(choices))
                plain = [str(key) for key in whole if key != "hydra"]
                chosen[choices] = OmegaConf.masked_copy(whole, plain)
            config = deepcopy(chosen[choices])
            OmegaConf.set_struct(config, False)
            for key, override in parsed([text for text in job if text not in choices]).items():
                OmegaConf.update(config, key, override.value(), force_add=True)
            yield config

    @contextmanager
    def recorded(self, size: int) -> Iterator[None]:
        """Within it the jobs know how many they are, and where to write down what failed."""
        if processes() > 1:
            raise UserError(
                "torchrun: is for one run; leave it out, and the runs of a sweep go side by side"
            )
        # Where jobs on other machines find it, too.
        record = Path(self.config.paths.outputs).absolute() / f".sweep-{os.getpid()}.jsonl"
        told = {SIZE: str(size), RECORD: str(record)}
        os.environ.update(told)
        with open_dict(self.config):  # Hydra sets them where a job has another environment
            self.config.hydra.overrides.hydra += [
                f"++hydra.job.env_set.{name}={hydra_value(value)}" for name, value in told.items()
            ]
        try:
            yield
        finally:
            os.environ.pop(SIZE, None)

    def jobs(self, arguments: Sequence[str]) -> list[list[str]]:
        """The overrides of each run, in order.

        Raises:
            UserError: no row has the values that were typed, or a value is an interval.
        """
        self._check()
        typed = parsed(arguments)
        rows = self._rows
        if self._tune is not None:
            rows = [*rows, *drawn_rows(self._tune, len(self._names()))]
        check_sections(typed)
        choosing = [key for key in typed if any(key in row for row in rows)]
        chosen = _chosen(rows, {key: typed[key] for key in choosing}) or [{}]
        params = [setting(key, value) for key, value in self._params.items() if key not in typed]
        if self._leave_one_out and "data.unseen" not in typed:
            params.append(_each_unseen(self._names(), self.config.data.name))
        swept = parsed(params) | {key: one for key, one in typed.items() if key not in choosing}
        grid = list(itertools.product(*map(_values, swept.values())))
        in_rows = [[setting(key, hydra_value(of)) for key, of in row.items()] for row in chosen]
        pairs = (
            itertools.product(in_rows, grid)
            if self._tune
            else ((row, one) for one in grid for row in in_rows)
        )
        return [[*one, *row] for row, one in pairs]

    def _check(self) -> None:
        """Raises UserError for settings of another kind than they must have."""
        rows, params, tune = self._rows, self._params, self._tune
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise UserError(f"hydra.sweeper.rows={rows}: must be a list of {{key: value}}")
        if not isinstance(params, dict):
            raise UserError(f"hydra.sweeper.params={params}: must be {{key: values}}")
        if tune is not None and not isinstance(tune, dict):
            raise UserError(f"hydra.sweeper.tune={tune}: must be {{configurations: …, seed: …}}")
        twice = sorted(params.keys() & {key for row in rows for key in row})
        if twice:
            raise UserError(
                f"{twice[0]}: both hydra.sweeper.rows and .params set it; let one do it"
            )

    def without_hydra(self) -> Config:
        """The config of all runs: of what is swept it has the defaults. Raises UserError."""
        plain = [str(key) for key in self.config if key != "hydra"]
        return typed(OmegaConf.masked_copy(self.config, plain))

    def _names(self) -> Sequence[str]:
        from robustmd.config.loading import domain_names  # noqa: PLC0415 - may load the data

        return domain_names(self.without_hydra())


def _say_refused(refused: Mapping[str, Sequence[int]], jobs: Sequence[Sequence[str]]) -> int:
    """Every mistake of a sweep, each with the first run that has it. Returns the exit code."""
    count = sum(map(len, refused.values()))
    lines = [f"robustmd: {count} of {len(jobs)} runs cannot be, and none was begun:"]
    for message, numbers in refused.items():
        more = f" (and {len(numbers) - 1} more)" if len(numbers) > 1 else ""
        first = run_title(numbers[0], jobs[numbers[0]])
        lines.append(printable(f"  {first}{more}: {message}"))
    print(*lines, sep="\n", file=sys.stderr)  # noqa: T201
    return 2


def _each_unseen(names: Sequence[str], data: str) -> str:
    if len(names) < 3:
        raise UserError(
            f"hydra.sweeper.leave_one_out=true: data={data} has {len(names)} domains; it needs "
            "three or more, as data=folder data.root=DIR may have"
        )
    return f"++data.unseen={','.join(f'[{hydra_value(name)}]' for name in names)}"


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value


def parsed(arguments: Sequence[str]) -> dict[str, Override]:
    """What was typed, by its key."""
    found = OverridesParser.create().parse_overrides(list(arguments))
    return {one.key_or_group: one for one in found}


def check_sections(typed: Iterable[str]) -> None:
    """Refuse a misspelt key once, and not again for each run. Raises UserError."""
    for key in typed:
        section, _, name = key.partition(".")
        if name and section in SECTIONS:
            allowed = [f"{section}.{one}" for one, _ in leaves_of(SECTIONS[section])]
            if key not in allowed:
                raise UserError(unknown_key(key, allowed))


def _chosen(rows: Sequence[Row], typed: Mapping[str, Override]) -> list[Row]:
    """The rows that have, of every key typed, one of the values typed."""
    found = list(rows)
    for key, override in typed.items():
        wanted = [text.partition("=")[2] for text in _values(override)]
        there = {hydra_value(row[key]) for row in found if key in row}
        unknown = [value for value in wanted if value not in there]
        if unknown:
            raise UserError(
                f"{key}={unknown[0]}: no row of this experiment has it; {key} is one of "
                f"{', '.join(sorted(there))}"
            )
        found = [row for row in found if key in row and hydra_value(row[key]) in wanted]
    return found


def _values(override: Override) -> list[str]:
    """The overrides of each value of a sweep, or the one."""
    line = str(override.input_line)
    if not override.is_sweep_override():
        return [line]
    if override.is_interval_sweep():
        raise UserError(
            f"{line.lstrip('+')}: an interval takes a sweeper that draws from it, "
            "list the values: key=a,b,c; examples/tune.py searches between them"
        )
    head = line.partition("=")[0]
    return [f"{head}={value}" for value in override.sweep_string_iterator()]


def setting(key: str, value: Any) -> str:
    """As it would be typed. Text is in Hydra's grammar already: "0,1,2" is a sweep."""
    written = value if isinstance(value, str) else hydra_value(value)
    return f"{'++' if '.' in key else ''}{key}={written}"
