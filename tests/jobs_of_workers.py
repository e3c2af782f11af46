"""Tasks for processes that tests start; by name, so that a new process finds them."""

import os
import signal
import sys
import time

from robustmd.sweeping.failures import Failure


def answer(job):
    """Do what the job says."""
    kind, given = job
    if kind == "print":
        print(given)
        print("to the other stream", file=sys.stderr)
    if kind == "variable":
        return os.environ[given]
    if kind == "die":
        print("last words", flush=True)
        os.kill(os.getpid(), signal.Signals[given])
    if kind == "hang up":  # as a process that is being killed: its pipes close before it is dead
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it hears of no parent any more
        os.closerange(3, 256)
        print("hung up", flush=True)
        time.sleep(given)
        os._exit(3)
    if kind == "sleep":
        print(os.getpid(), flush=True)
        time.sleep(given)
    return given


class Runs:
    """As the task of `robustmd train`: what comes of a run, its seed says."""

    def __init__(self):
        self.failures = []

    def __call__(self, config):
        print("worst training loss")
        if config.seed == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if config.seed == 2:
            self.failures.append(Failure(2, "refused", "the third"))
        if config.seed == 3:
            raise SystemExit(143)
        return os.getpid(), config.seed
