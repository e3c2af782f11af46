"""Tasks for processes that tests start; by name, so that a new process finds them."""

import os
import signal
import sys
import time

from robustmd.sweep.jobs import Ended


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


def run_job(job):
    """As a job of `robustmd train`: what comes of it, its seed says."""
    print("worst training loss")
    seed = job.overrides[-1]
    if seed == "seed=1":
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == "seed=2":
        return Ended(2, "refused")
    return Ended(0, str(os.getpid()), stops=143 * (seed == "seed=3"))
