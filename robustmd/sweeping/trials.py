"""A run as a trial of a search: what it tells the sweeper that drew its settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from robustmd.runs.reader import judge, validated_so_far

if TYPE_CHECKING:
    from robustmd.training.run import Outcome


class WorstLoss(float):
    """A run's worst-case validation loss, after its last iteration.

    so_far: iteration -> the least until then. pruned: the run ended early, as worse than others.
    """

    so_far: Mapping[int, float] = {}
    pruned = False


def worst_loss_of(outcome: Outcome) -> WorstLoss | None:
    """Over the domains that train; infinity where it diverged, None without a validation split."""
    run, said = judge(outcome.directory, outcome.directory)
    run = run or next((one.run for one in said if one.run is not None), None)
    so_far = validated_so_far(run.path, run.domains) if run else {}
    if run is not None and "val" in run.final:
        found = WorstLoss(run.worst("loss", "val"))
    elif outcome.status in ("diverged", "pruned"):
        found = WorstLoss(math.inf)
    else:
        return None
    found.so_far, found.pruned = so_far, outcome.status == "pruned"
    return found
