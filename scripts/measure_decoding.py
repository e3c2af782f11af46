"""How fast photos become a prepared store, and what it costs to read from it.

    python scripts/measure_decoding.py                     5,000 photos of 500×375, best of three
    python scripts/measure_decoding.py --images 500 --tries 1

Prints, for 1 and for all cores: seconds of the preparation and its peak memory; then the peak
memory for a tenth of the photos, and the time of a second start. Needs Linux, and a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

DIFFERENT = 20  # photos that are drawn; the others are copies of them under other names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--size", type=int, default=256, help="pixels of the stored square")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _child(Path(given.child[0]), Path(given.child[1]), int(given.child[2]), int(given.child[3]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _draw(folder / "all", given.images)
        fewer = max(4, given.images // 10)  # two a domain: one to train on and one to test on
        _draw(folder / "tenth", fewer)
        best = {}
        for cores in sorted({1, len(os.sched_getaffinity(0))}):
            runs = [_prepare(folder, "all", given.size, cores) for _ in range(given.tries)]
            best[cores] = min(seconds for seconds, _, _ in runs)
            peak = max(memory for _, _, memory in runs)
            _say(f"{given.images:,} photos, {cores} core(s): {best[cores]:.2f} s, {peak:.0f} MB")
        _say(f"{best[1] / best[max(best)]:.2f} times as fast with {max(best)} cores as with 1")
        for cores in best:
            peak = max(_prepare(folder, "tenth", given.size, cores)[2] for _ in range(given.tries))
            _say(f"{fewer:,} photos, {cores} core(s): {peak:.0f} MB")
        _, second, _ = _prepare(folder, "all", given.size, 1)
        _say(f"second start: {second:.3f} s")


def _draw(folder: Path, count: int) -> None:
    """Photos of 500×375 with detail at all scales, about as large as ImageNet's (100 kB)."""
    random = np.random.default_rng(0)
    raw = []
    for _ in range(DIFFERENT):
        layers = []
        for cells in (4, 16, 64, 256):
            noise = random.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
            layers.append(np.asarray(Image.fromarray(noise).resize((500, 375)), dtype=float))
        path = folder / "draft.jpg"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.mean(layers, axis=0).astype(np.uint8)).save(path, quality=92)
        raw.append(path.read_bytes())
    path.unlink()
    for number in range(count):
        place = folder / ("a" if number % 2 else "b") / f"class_{number % 5}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.jpg").write_bytes(raw[number % DIFFERENT])


def _prepare(folder: Path, which: str, size: int, cores: int) -> tuple[float, float, float]:
    """Seconds of the preparation and of a second start, and peak memory (MB), in a new process."""
    with tempfile.TemporaryDirectory() as cache:
        child = [str(folder / which), cache, str(size), str(cores)]
        command = [sys.executable, __file__, "--child", *child]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second, peak = map(float, done.stdout.split())
    return first, second, peak


def _child(root: Path, cache: Path, size: int, cores: int) -> None:
    from robustmd.domains.folder import load  # noqa: PLC0415

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    times = []
    for _ in range(2):
        begun = time.perf_counter()
        load(cache, root=root, size=size)
        times.append(time.perf_counter() - begun)
    # Not getrusage's, which begins with that of the process before exec.
    status = Path("/proc/self/status").read_text("ascii")
    peak = next(int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM"))
    _say(f"{times[0]} {times[1]} {peak / 1024}")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
