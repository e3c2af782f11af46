"""The command line that makes a run again, or with other seeds."""

import re
from collections.abc import Sequence

from robustmd.runs import rerun
from robustmd.runs.run import Run

_OWN = re.compile(r"[+~]*(seed|hydra\..*)=")  # which of many it was


def command_for(run: Run, seeds: Sequence[int], *, again: bool = False) -> str:
    """ "robustmd train -m data=digits method=opt seed=3,4".

    From the overrides that the run wrote down; where it wrote none, every setting of its
    config.yaml that can change a number is named.

    Args:
        run: one of that configuration.
        seeds: at least one.
        again: with force=true, for a run that says of itself that it is finished.
    """
    try:
        found = [o for o in rerun.overrides(run.config, run.environment) if not _OWN.match(o)]
    except (KeyError, TypeError):  # a foreign config.yaml that names no backbone
        found = [f"data={rerun.hydra_value(run.data)}", f"method={rerun.hydra_value(run.method)}"]
    many = ["-m"] if len(seeds) > 1 else []
    seed = f"seed={','.join(map(str, seeds))}"
    return rerun.command([*many, *found, seed, *(["force=true"] * again)])
