"""How fast photos become a prepared store, and what it costs to read from it.

    python scripts/measure_decoding.py                     5,000 photos of 500×375, best of three
    python scripts/measure_decoding.py --images 500 --tries 1

Prints, for 1 and for all cores: seconds of the preparation and its peak memory; then the peak
memory for a tenth of the photos, the time of a second start, and what a batch of 64-pixel photos
costs beside a training iteration of ResNet18. Needs Linux, and a quiet machine.
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
        _draw(folder / "tenth", given.images // 10)
        best = {}
        for cores in sorted({1, len(os.sched_getaffinity(0))}):
            runs = [_prepare(folder, "all", given.size, cores) for _ in range(given.tries)]
            best[cores] = min(seconds for seconds, _, _ in runs)
            peak = max(memory for _, _, memory in runs)
            _say(f"{given.images:,} photos, {cores} core(s): {best[cores]:.2f} s, {peak:.0f} MB")
        _say(f"{best[1] / best[max(best)]:.2f} times as fast with {max(best)} cores as with 1")
        for cores in best:
            peak = max(_prepare(folder, "tenth", given.size, cores)[2] for _ in range(given.tries))
            _say(f"{given.images // 10:,} photos, {cores} core(s): {peak:.0f} MB")
        _, second, _ = _prepare(folder, "all", given.size, 1)
        _say(f"second start: {second:.3f} s")
    _batches()


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
    from robustmd.domains.listing import list_root  # noqa: PLC0415
    from robustmd.domains.prepared_images import prepare  # noqa: PLC0415

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    times = []
    for _ in range(2):
        begun = time.perf_counter()
        prepare(list_root(root), cache, size, lambda line: None)
        times.append(time.perf_counter() - begun)
    # Not getrusage's, which begins with that of the process before exec.
    status = Path("/proc/self/status").read_text("ascii")
    peak = next(int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM"))
    _say(f"{times[0]} {times[1]} {peak / 1024}")


def _batches(iterations: int = 10, share: int = 32, size: int = 64, crop: int = 56) -> None:
    """A batch of two domains, one tenfold, against forward, backward and step; one thread."""
    import torch  # noqa: PLC0415
    from robustmd.training.batches import BatchStream  # noqa: PLC0415
    from robustmd.training.pool import TrainingPool, resident_splits  # noqa: PLC0415
    from torchvision.models import resnet18  # noqa: PLC0415

    from robustmd.data_sets.pets import EXPANSION  # noqa: PLC0415
    from robustmd.domains.domain import Domain, DomainSet, Examples  # noqa: PLC0415
    from robustmd.domains.examples import Views  # noqa: PLC0415

    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (1000, size, size, 3), dtype=np.uint8)
    labels = np.arange(1000) % 24
    domains = []
    for name, views in (("imagenet", Views(crop=crop)), ("vgg", Views(EXPANSION, crop))):
        test = Examples(images, labels, views=Views(crop=crop))
        domains.append(Domain(name, Examples(images, labels, views=views), test))
    found = DomainSet("pets", tuple(domains), tuple(map(str, range(24))), "")
    device = torch.device("cpu")
    pool = TrainingPool([*resident_splits(found, device)["train"].values()])
    batches = BatchStream({d.name: d.train for d in found}, 2 * share, 0)
    model = resnet18(num_classes=24).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
    spent = []
    for iteration in range(iterations):
        begun = time.perf_counter()
        x, y = pool.gather(batches.draw(iteration))
        read = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        spent.append((read - begun, time.perf_counter() - read))
    batch, step = np.median(spent[1:], axis=0)
    _say(
        f"batch of {2 * share} at {crop} px: {1e3 * batch:.1f} ms, ResNet18's iteration "
        f"{1e3 * step:.1f} ms ({100 * batch / step:.1f} %)"
    )


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
