"""The runs of a sweep: rows × params, in order. An experiment says both at its top:

    sweep:
      rows:   [{method: even}, {method: opt, method.lam: 0.3}]   settings that go together
      params: {seed: "0,1,2"}                                    values for every row
      leave_one_out: true                                        each domain unseen in turn
      tune:   {configurations: 4, seed: 0, every_method: {…}}    rows drawn for every method

What is typed wins over `params`. Of what rows set, a typed value chooses the rows that have it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from hydra.core.override_parser.types import Override

from robustmd.config.check import check
from robustmd.config.compose import SWEEP, compose
from robustmd.config.grammar import is_hydras, parsed
from robustmd.config.loading import domain_names
from robustmd.config.values import hydra_value
from robustmd.errors import UserError
from robustmd.sweep.draws import drawn_rows

Row = Mapping[str, Any]
KINDS = {  # of a sweep's parts, with what each must be
    "rows": (list, "a list of {key: value}"),
    "params": (dict, "{key: values}"),
    "tune": (dict, "{configurations: …, seed: …}"),
    "leave_one_out": (bool, "true or false"),
}


def jobs(arguments: Sequence[str], is_sweep: bool) -> list[list[str]] | None:
    """The overrides of each run, in order; None where neither `is_sweep` (-m was typed) nor an
    experiment makes a sweep of them.

    Raises:
        UserError: no row has the values that were typed, or what an experiment says is no sweep.
    """
    typed = parsed(text for text in arguments if not is_hydras(text))
    plain = [str(one.input_line) for one in typed.values() if not one.is_sweep_override()]
    base = compose([*(text for text in arguments if is_hydras(text)), *plain])
    rows, params, tune, leave_one_out = _parts(base.get(SWEEP) or {})
    if not (is_sweep or rows or params or tune or leave_one_out):
        return None
    if tune or (leave_one_out and "data.unseen" not in typed):
        config = check(base)
        names = domain_names(config)
        if tune:
            rows = [*rows, *drawn_rows(tune, len(names))]
        if leave_one_out and "data.unseen" not in typed:
            params |= {"data.unseen": _each_unseen(names, config.data.name)}
    choosing = {key: one for key, one in typed.items() if any(key in row for row in rows)}
    chosen = _chosen(rows, choosing) or [{}]
    swept = parsed(_setting(key, value) for key, value in params.items() if key not in typed)
    swept |= {key: one for key, one in typed.items() if key not in choosing}
    grid = list(itertools.product(*map(_values, swept.values())))
    in_rows = [[f"{key}={hydra_value(of)}" for key, of in row.items()] for row in chosen]
    if tune:
        return [[*one, *row] for row in in_rows for one in grid]
    return [[*one, *row] for one in grid for row in in_rows]


def _parts(sweep: Any) -> tuple[list[Row], dict[str, Any], dict[str, Any] | None, bool]:
    """Rows, params, tune and leave_one_out. Raises UserError for what is of another kind."""
    if not isinstance(sweep, dict) or not sweep.keys() <= KINDS.keys():
        raise UserError(f"sweep={sweep}: must be a group of {', '.join(KINDS)}")
    for name, (kind, words) in KINDS.items():
        value = sweep.get(name)
        if value is not None and not isinstance(value, kind):
            raise UserError(f"sweep.{name}={value}: must be {words}")
    rows, params = sweep.get("rows") or [], dict(sweep.get("params") or {})
    if not all(isinstance(row, dict) for row in rows):
        raise UserError(f"sweep.rows={rows}: must be a list of {{key: value}}")
    for twice in sorted(params.keys() & {key for row in rows for key in row}):
        raise UserError(f"{twice}: both sweep.rows and sweep.params set it; let one do it")
    return rows, params, sweep.get("tune"), bool(sweep.get("leave_one_out"))


def _each_unseen(names: Sequence[str], data: str) -> str:
    if len(names) < 3:
        raise UserError(
            f"sweep.leave_one_out=true: data={data} has {len(names)} domains; it needs three or "
            "more, as data=folder data.root=DIR may have"
        )
    return ",".join(f"[{hydra_value(name)}]" for name in names)


def _chosen(rows: Sequence[Row], typed: Mapping[str, Override]) -> list[Row]:
    """The rows that have, of every key typed, one of the values typed. Rows that set nothing else
    than that key give way to the values typed."""
    for key, override in typed.items():
        wanted = [text.partition("=")[2] for text in _values(override)]
        there = {hydra_value(row[key]) for row in rows if key in row}
        unknown = [value for value in wanted if value not in there]
        if unknown and all(row.keys() == {key} for row in rows):
            return [{key: value} for value in wanted]
        if unknown:
            raise UserError(
                f"{key}={unknown[0]}: no row of this experiment has it; {key} is one of "
                f"{', '.join(sorted(there))}"
            )
        rows = [row for row in rows if key in row and hydra_value(row[key]) in wanted]
    return list(rows)


def _values(override: Override) -> list[str]:
    """The overrides of each value of a sweep, or the one."""
    line = str(override.input_line).lstrip("+")
    if not override.is_sweep_override():
        return [line]
    if override.is_interval_sweep():
        raise UserError(
            f"{line}: an interval takes a sweeper that draws from it, "
            "list the values: key=a,b,c; examples/tune.py searches between them"
        )
    return [f"{override.key_or_group}={value}" for value in override.sweep_string_iterator()]


def _setting(key: str, value: Any) -> str:
    """As it would be typed. Text is in Hydra's grammar already: "0,1,2" is a sweep."""
    return f"{key}={value if isinstance(value, str) else hydra_value(value)}"
