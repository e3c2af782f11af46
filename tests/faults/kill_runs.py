"""Kills training processes at random and compares what they finish with undisturbed twins.

    PYTHONPATH=tests python tests/faults/kill_runs.py --kills 200 --data digits_mini FOLDER

A run is started, killed or hit by a fault inside a write, started again by the same settings, and
so on, and then let finish. It has to equal its twin: metrics.csv, weights.csv, summary, final
model, predictions. Half of the tries are killed at a random moment, the others act inside a write.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from faults.faulty_os import HOWS, OPERATIONS, FaultyOS
from faults.tries import Case, attempt, differences
from tiny import synthetic_domains

from robustmd.domains.digits_mini import DigitsMini
from robustmd.registry import DataFacts
from robustmd.runs.listing import list_runs
from robustmd.training import plan as plan_module

KINDS = (
    ("method=opt", "evaluation.keep=best_val"),
    ("method=even", "training.ema=0.9"),
    ("method=kl", "training.patience=2"),
    ("method=opt", "training.domains_per_batch=1"),
    ("method=ot", "evaluation.metrics=[macro_f1,ece]"),
    ("method=minimax",),
    ("method=oracle", "method.every=7"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--per-run", type=int, default=8, help="tries of one run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", choices=("synthetic", "digits_mini"), default="synthetic")
    given = parser.parse_args()
    folder = given.folder.resolve()
    if given.data == "synthetic":
        domains = synthetic_domains()
    else:
        domains = DigitsMini().load(DataFacts(folder.joinpath, lambda _: None))
    with_validation = domains.with_validation(0.25, seed=0)
    plan_module.load_domains = lambda config, say: with_validation  # once for all processes
    record = kill_runs(folder, given.kills, given.per_run, random.Random(given.seed))
    print(json.dumps(record, indent=1))
    return 1 if record["faults"] else 0


def kill_runs(folder: Path, kills: int, per_run: int, chance: random.Random) -> dict[str, Any]:
    """Until `kills` processes were killed: counts, and every departure from what has to hold."""
    begun, tally, faults, runs = time.perf_counter(), Counter[str](), list[str](), 0
    while tally["kills"] < kills:
        overrides = (*KINDS[runs % len(KINDS)], f"seed={runs // len(KINDS)}")
        twin = Case(overrides, folder / f"twin_{runs}")
        undisturbed = attempt(twin, FaultyOS())
        counts = json.loads(twin.outputs.with_suffix(".counts").read_text())
        case = Case(overrides, folder / f"run_{runs}")
        room = min(per_run, kills - tally["kills"])
        for _ in range(room):
            if _disturb(case, counts, undisturbed.seconds, chance, tally, faults) == 0:
                break  # it finished before the fault: a run has no more to be disturbed
        last = attempt(case, FaultyOS())
        found = differences(case.directory(), twin.directory()) if last.code == 0 else [last.error]
        faults += [f"{case.outputs.name} {overrides}: {what}" for what in found]
        runs += 1
    seconds = round(time.perf_counter() - begun, 1)
    return {"runs": runs, **tally, "seconds": seconds, "faults": faults}


def _disturb(
    case: Case,
    counts: dict[str, int],
    seconds: float,
    chance: random.Random,
    tally: Counter[str],
    faults: list[str],
) -> int:
    """One try that is killed or meets a fault, counted only where it did. Returns its exit code."""
    if chance.random() < 0.5:
        done = attempt(case, FaultyOS(), kill_after=chance.uniform(0, seconds))
        kind = "at a random moment"
    else:
        operation, how = chance.choice(OPERATIONS), chance.choice(HOWS)
        nth = chance.randint(1, counts[operation])
        done = attempt(case, FaultyOS(operation, nth, how))
        kind = "inside a write"
    if done.was_killed:
        tally["kills"] += 1
        tally[f"kills {kind}"] += 1
    elif done.code == 2:
        tally["errors from the disk"] += 1
        if len(done.error.splitlines()) != 1 or not done.error.startswith("robustmd: "):
            faults.append(f"{case.outputs.name}: {done.error}")
    elif done.code != 0:
        faults.append(f"{case.outputs.name}: code {done.code}: {done.error}")
    if case.outputs.is_dir():
        claimed = [one for one in list_runs(case.outputs) if one.status == "finished"]
        if claimed and done.code != 0 and not _was_finishing(claimed[0].path):
            faults.append(f"{case.outputs.name}: says finished and is not")
    return done.code


def _was_finishing(run: Path) -> bool:
    """Killed after the summary said finished: then all it says has to be there."""
    return (run / "checkpoints" / "final.pt").exists() and (run / "predictions.npz").exists()


if __name__ == "__main__":
    sys.exit(main())
