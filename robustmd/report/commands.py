"""The command line that makes a run again, or with another seed."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from robustmd.runs.run import Run

OPTIONS = ("data", "backbone", "method")  # groups whose `name` is what is typed
SECTIONS = (*OPTIONS, "training", "evaluation")
_OWN = re.compile(r"[+~]*(seed|force|resume|hydra\..*)=")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")


def command_for(run: Run, seeds: Sequence[int], *, again: bool = False) -> str:
    """ "robustmd train -m data=digits method=opt seed=3,4".

    From the overrides that the run wrote down; where it wrote none, every setting of its
    config.yaml that can change a number is named.

    Args:
        run: one of that configuration.
        seeds: at least one.
        again: with force=true, for a run that says of itself that it is finished.
    """
    recorded = run.environment.get("overrides")
    if isinstance(recorded, list) and all(isinstance(one, str) for one in recorded):
        overrides = [one for one in recorded if not _OWN.match(one)]
    else:
        overrides = list(_from_config(run.config))
    many = ["-m"] if len(seeds) > 1 else []
    seed = f"seed={','.join(map(str, seeds))}"
    return shlex.join(["robustmd", "train", *many, *overrides, seed, *(["force=true"] * again)])


def _from_config(config: Mapping[str, Any]) -> Iterator[str]:
    for option in OPTIONS:
        if isinstance(config.get(option), Mapping):
            yield f"{option}={_text(config[option].get('name'))}"
    for section in SECTIONS:
        yield from _settings(config.get(section), section)
    paths = config.get("paths")
    if isinstance(paths, Mapping):
        yield from _settings({k: v for k, v in paths.items() if v is not None}, "paths")


def _settings(node: Any, prefix: str) -> Iterator[str]:
    """ "training.momentum=0.9" for every leaf below the node."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if not (key == "name" and prefix in OPTIONS):
                yield from _settings(value, f"{prefix}.{key}")
    elif prefix not in SECTIONS:
        yield f"{prefix}={_text(node)}"


def _text(value: Any) -> str:
    """The value in Hydra's grammar."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_text(k)}:{_text(v)}" for k, v in value.items()) + "}"
    text = str(value)
    if _PLAIN.fullmatch(text.removeprefix("/")):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
