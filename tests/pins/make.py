"""Pins: what today's commands give, kept to compare later code with.

python tests/pins/make.py [NAME…]            makes pins again: training, images, lists, …
python tests/pins/make.py --check [NAME…]    says what differs; exit code 1 if something does

Bytes hold on one type of machine: where the CPU or the library is another than a pin's, sha256 are
passed over and numbers compared at CLOSE.
"""

import argparse
import contextlib
import csv
import functools
import gzip
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from pins import commands, images, runs

DATA = Path(__file__).parent / "data"
SAME = {"reports": 1e-9}  # numbers that sums in another order may move
CLOSE = 1e-5  # relative and absolute, of what a few iterations give on other machines
ROUGH = {"bf16": 1e-2, "rotated images that ship": 1e-3}  # rounds to 8 bits; steps that are large
FEATURES = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve")


def machine(*packages: str) -> dict[str, str]:
    """What the bytes of a pin depend on."""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text()
        words = set(text.split())
        return {
            "vendor": next((v for v in ("GenuineIntel", "AuthenticAMD") if v in words), ""),
            "features": " ".join(name for name in FEATURES if name in words),
            **{name: version(name) for name in packages},
        }
    return {"vendor": sys.platform}


def libraries(*packages: str) -> dict[str, str]:
    """The same where the CPU changes nothing."""
    return {name: version(name) for name in packages}


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[None]:
    """Within it the working folder is one with all files that pins read."""
    before = Path.cwd()
    images.write_files(folder)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


# name -> its cases, what makes the record of a case, and what its bytes depend on
KINDS: dict[str, tuple[list[str], Callable[[str], Any], dict[str, str]]] = {
    "training": (
        [*runs.CONFIGURATIONS],
        lambda case: runs.train(case, Path(tempfile.mkdtemp(dir="."))),
        machine("torch"),
    ),
    "images": ([*images.SETS], images.record, libraries("pillow", "numpy")),
    "lists": (commands.LISTS, commands.listing, {}),
    "fair": (commands.FAIR, commands.listing, {}),
    "reports": (commands.REPORTS, commands.report, {}),
    "fair_tables": (["printed"], commands.fair_tables, {}),
    "names": (commands.NAMES, commands.names, {}),
}


@functools.cache
def read(name: str) -> dict[str, Any]:
    """{"machine": …, "pins": {case: record}}"""
    return json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))


def write(name: str, pins: dict[str, Any]) -> None:
    DATA.mkdir(exist_ok=True)
    text = json.dumps({"machine": KINDS[name][2], "pins": pins}, ensure_ascii=False, indent=0)
    (DATA / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def differences(pin: Any, now: Any, close: float = 0.0, place: str = "") -> list[str]:
    """Where a record differs from its pin, a line each. close: relative and absolute; 0: bytes."""
    if pin == now or (close and place.endswith("sha256")):
        return []
    if isinstance(pin, dict) and isinstance(now, dict):
        lines = [f"{place}/{key}: only in the pin" for key in pin.keys() - now.keys()]
        lines += [f"{place}/{key}: not in the pin" for key in now.keys() - pin.keys()]
        for key in pin.keys() & now.keys():
            lines += differences(pin[key], now[key], close, f"{place}/{key}")
        return sorted(lines)
    if isinstance(pin, list) and isinstance(now, list) and len(pin) == len(now):
        pairs = enumerate(zip(pin, now, strict=True))
        return [line for i, (p, n) in pairs for line in differences(p, n, close, f"{place}[{i}]")]
    if close and is_close(pin, now, close):
        return []
    return [f"{place}: {pin!r:.200} is now {now!r:.200}"]


def is_close(pin: Any, now: Any, close: float) -> bool:
    """Two numbers, or two lines of CSV with the same words and near numbers."""
    if isinstance(pin, str) and isinstance(now, str) and ("," in pin or "," in now):
        a, b = next(csv.reader([pin])), next(csv.reader([now]))
        return len(a) == len(b) and all(
            p == n or is_close(p, n, close) for p, n in zip(a, b, strict=True)
        )
    try:
        return math.isclose(float(pin), float(now), rel_tol=close, abs_tol=close)
    except (TypeError, ValueError):
        return False


def closeness(name: str, case: str) -> float:
    """How near numbers must be: 0 where this machine gives the pin's bytes."""
    is_here = read(name)["machine"] == KINDS[name][2]
    return SAME.get(name, 0.0) if is_here else ROUGH.get(case, CLOSE)


def compare(name: str, case: str) -> list[str]:
    """How one case of today differs from its pin."""
    now = json.loads(json.dumps(KINDS[name][1](case)))
    return differences(read(name)["pins"][case], now, closeness(name, case))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(KINDS)}; none: all")
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    asked = parser.parse_args()
    count = 0
    with tempfile.TemporaryDirectory() as folder, workplace(Path(folder)):
        for name in asked.names or KINDS:
            cases, record, _ = KINDS[name]
            if not asked.check:
                write(name, {case: record(case) for case in cases})
                continue
            for case in cases:
                lines = compare(name, case)
                count += bool(lines)
                print(*(f"{name}, {case}{line}" for line in lines[:5]), sep="\n", end="")
    print(f"\n{count} cases differ" if asked.check else "")
    return int(count > 0)


if __name__ == "__main__":
    raise SystemExit(main())
