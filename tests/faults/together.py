"""Sixteen runs, made by four processes at once in one outputs tree, each in an order of its own.

PYTHONPATH=tests python tests/faults/together.py OUTPUTS
"""

import io
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import torch._inductor  # noqa: F401 - what the first optimizer would load, in every process anew
from faults.tries import SETTINGS
from rich.console import Console
from tiny import composed, synthetic_domains

from robustmd.errors import UserError
from robustmd.training import run as run_module

PROCESSES = 4
RUNS = [f"method={m} seed={s}" for m in ("even", "opt", "kl", "minimax") for s in range(4)]


def make_all(outputs: Path, number: int) -> dict[str, int]:
    """Make every run; one that another process is at work on is left for later."""
    waiting = random.Random(number).sample(RUNS, len(RUNS))
    tally = Counter[str]()
    while waiting:
        run = waiting.pop(0)
        config = composed(*SETTINGS, *run.split(), f"paths.outputs={outputs}")
        try:
            tally[run_module.run(config, Console(file=io.StringIO())).status] += 1
        except UserError as error:
            if "is at work on this run" not in str(error):
                raise
            tally["busy"] += 1
            waiting.append(run)
            time.sleep(0.05)
    return tally


def main() -> None:
    outputs = Path(sys.argv[1]).resolve()
    domains = synthetic_domains()
    run_module.load_domains = lambda config, say: domains
    children = {}
    for number in range(PROCESSES):
        readable, writable = os.pipe()
        process = os.fork()
        if process == 0:
            os.write(writable, json.dumps(make_all(outputs, number)).encode())
            os._exit(0)
        os.close(writable)
        children[process] = readable
    tally = Counter[str]()
    for process, readable in children.items():
        _, status = os.waitpid(process, 0)
        tally["crashed"] += status != 0
        tally.update(json.loads(os.read(readable, 10_000) or b"{}"))
    print(json.dumps(tally))


if __name__ == "__main__":
    main()
