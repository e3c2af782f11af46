"""The command line that makes a run again, or with other seeds."""

from collections.abc import Sequence

from robustmd.runs import rerun
from robustmd.runs.run import Run
from robustmd.runs.untrusted import Unreadable


def command_for(run: Run, seeds: Sequence[int], *, again: bool = False) -> str:
    """ "robustmd train -m data=digits method=opt seed=3,4", or why there is none.

    From the overrides that the run wrote down; where it wrote none, every setting of its
    config.yaml that can change a number is named.

    Args:
        run: one of that configuration.
        seeds: at least one.
        again: with force=true, for a run that says of itself that it is finished.
    """
    try:
        found = rerun.overrides(run.config, run.environment, seeds=seeds)
    except Unreadable as reason:
        return f"not known: {reason}"
    many = ["-m"] if len(seeds) > 1 else []
    return rerun.command([*many, *found, *(["force=true"] * again)])
