"""The processes of a sweep: killed at random, the same command until done gives the same bytes; a
hundred runs take no more of them, nor of memory, than twenty."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from faults.tries import differences

from robustmd.runs.listing import list_runs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc"),
]
RUNS, KILLS, ORPHANED = 12, 40, 60.0
SWEEP = [
    *(sys.executable, "-m", "robustmd", "train", "-m"),
    *("method=even,opt,minimax", "seed=0,1,2,3", "jobs=2", "data=digits_mini"),
    *("training.iterations=100", "training.batch_size=8", "backbone.width=0.05"),
    *("evaluation.every=50", "evaluation.examples=40", "logging.every=4", "checkpoint.every=5"),
]


class Sweep:
    """The command, started once more."""

    def __init__(self, folder: Path, *further: str) -> None:
        self._said = (folder / "said").open("w+")
        self.process = subprocess.Popen(
            [*SWEEP, "paths.outputs=outputs", *further],
            cwd=folder,
            stdout=self._said,
            stderr=subprocess.STDOUT,
        )

    def workers(self) -> list[int]:
        """The processes that train."""
        return [one for one in children(self.process.pid) if "spawn_main" in command(one)]

    def said(self) -> str:
        """All that it printed; it has ended."""
        with self._said:
            self._said.seek(0)
            return self._said.read()


def children(parent: int) -> list[int]:
    with suppress(OSError):
        return [int(n) for n in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    return []


def command(process: int) -> str:
    """Its command line; nothing where it is no more, or dead and not asked for."""
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text()
    return ""


def resident(process: int) -> int:
    """Its memory, KiB."""
    with suppress(OSError):
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
        return int(found[1]) if found else 0
    return 0


def kill(*processes: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def assert_gone(processes: list[int]) -> float:
    """Every one within a minute. Returns the seconds that it took."""
    begun = time.monotonic()
    while any("spawn_main" in command(one) for one in processes):
        assert time.monotonic() - begun < ORPHANED, "an orphan is still there"
        time.sleep(0.1)
    return time.monotonic() - begun


def assert_all_named(code: int, said: str, finished: set[str]) -> None:
    """Of a command that came to its end: what is not finished is named, once, and no other."""
    head, _, tail = said.partition("did not finish:\n")
    begun = [line for line in head.splitlines() if line.startswith("[run ")]
    assert len(begun) == len(set(begun)), begun
    named = re.findall(r"^  \[run \d+ of 12\] method=(\w+) seed=(\d) [^:]*: (.*)$", tail, re.M)
    runs = [f"{method} {seed}" for method, seed, _ in named]
    assert len(runs) == len(set(runs)), runs
    assert set(runs) | finished == {
        f"{method} {seed}" for method in ("even", "opt", "minimax") for seed in range(4)
    }, said
    assert all("its process ended with SIGKILL" in words for *_, words in named), named
    assert code == bool(named)


def finished(outputs: Path) -> dict[str, Path]:
    found = [run for run in list_runs(outputs) if run.status == "finished"]
    return {
        f"{run.path.parts[-3]} {run.path.name.removeprefix('seed=')}": run.path for run in found
    }


def test_forty_kills_of_workers_the_parent_or_all(tmp_path: Path) -> None:
    chance, tally, orphans = random.Random(0), {"worker": 0, "parent": 0, "all": 0}, [0.0]
    (tmp_path / "twins").mkdir()
    undisturbed, begun = Sweep(tmp_path / "twins"), time.monotonic()
    assert undisturbed.process.wait() == 0
    whole = time.monotonic() - begun
    twins = finished(tmp_path / "twins/outputs")
    assert len(twins) == RUNS
    rounds = launches = 0
    while (killed := sum(tally.values())) < KILLS:
        folder = tmp_path / f"round_{rounds}"
        folder.mkdir()
        rounds, code = rounds + 1, None
        while code != 0:
            sweep, launches = Sweep(folder), launches + 1
            while (code := sweep.process.poll()) is None:
                time.sleep(chance.uniform(0, whole / 4))
                workers = sweep.workers()
                victim = chance.choice(("worker", "worker", "parent", "all"))
                if not workers or killed >= KILLS:
                    continue
                tally[victim] += 1
                killed += 1
                if victim == "worker":
                    kill(chance.choice(workers))
                else:
                    kill(sweep.process.pid, *(workers if victim == "all" else ()))
                    sweep.process.wait()
                    if chance.random() < 0.5:  # else the next command meets them
                        orphans.append(assert_gone(workers))
            said = sweep.said()
            if code != -signal.SIGKILL:
                assert_all_named(code, said, set(finished(folder / "outputs")))
        ended = finished(folder / "outputs")
        assert ended.keys() == twins.keys()
        found = {name: differences(ended[name], twins[name]) for name in twins}
        assert not any(found.values()), found
    print(tally, f"{rounds} rounds, {launches} launches, orphans {max(orphans):.1f} s at most")


def test_a_hundred_runs_take_no_more_processes_and_memory_than_twenty(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path, "seed=range(34)", "training.iterations=4", "evaluation.every=4")
    counts, early, late = set(), [], []
    while sweep.process.poll() is None:
        time.sleep(0.1)
        ended = (tmp_path / "said").read_text().count("/seed=")
        processes = [sweep.process.pid, *children(sweep.process.pid)]
        counts.add(len(processes))
        if 20 <= ended < 40 or ended >= 82:
            (early if ended < 40 else late).append(sum(map(resident, processes)))
    assert sweep.process.returncode == 0, sweep.said()
    assert max(counts) == 4  # with multiprocessing's own
    print(f"{max(early) >> 10} MiB from the 20th run on, {max(late) >> 10} from the 82nd")
    assert max(late) < 1.05 * max(early)
