"""What `robustmd doctor` looks at: is all here that a run needs, and what mends what is not?"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import torch
from packaging.requirements import Requirement
from rich.console import Console

from robustmd.config.check import make_config
from robustmd.config.settings import Config
from robustmd.console import make_console
from robustmd.errors import UserError
from robustmd.extras import install, required
from robustmd.registry import BACKBONES, DATA
from robustmd.sweep.places import available_gib, cores
from robustmd.training.environment import choose_device, version
from robustmd.training.run import run

FREE = 1.0  # GiB of memory, and of the disk of each folder, below which runs may end
FOR_US = ("dev", "docs")  # extras that no run uses
DRIVER = Path("/proc/driver/nvidia/version")
SHORT = (  # of a run of two iterations on what ships with the package
    *("data=digits_mini", "backbone=alexnet_quarter", "backbone.width=0.05", "method=opt"),
    *("training.iterations=2", "training.batch_size=20", "evaluation.examples=20"),
)


class Finding(NamedTuple):
    """is_off: whether a run would suffer; else `mend` is what more there could be."""

    what: str
    found: str
    mend: str = ""
    is_off: bool = False


def doctor(overrides: Sequence[str]) -> int:
    """Print what was found, each with what mends it. Returns 1 where something is off. Raises
    UserError."""
    console, found = make_console(), list(findings(overrides))
    width = max(len(one.what) for one in found)
    for one in found:  # no table: it would break a command or an address that is to be copied
        mark = "!" if one.is_off else " "
        console.print(f"{mark}  {one.what:<{width}}  {one.found}", soft_wrap=True)
        if one.mend:
            console.print(f"   {'':<{width}}  → {one.mend}", soft_wrap=True)
    off = [one.what for one in found if one.is_off]
    console.print(f"off: {', '.join(off)}" if off else "all is here that a run needs")
    return 1 if off else 0


def findings(overrides: Sequence[str]) -> Iterator[Finding]:
    """One after another, as they are found. Raises UserError: the settings make no config."""
    config = make_config(overrides)
    yield from packages()
    yield from _machine(config)
    yield from _folders(config)
    yield from _files(config)
    yield _short_run(overrides)


def packages() -> Iterator[Finding]:
    """What the package asks for, and its extras; nothing is imported."""
    core = required()
    wrong = [one for one in core if not _is_there(one)]
    for one in wrong:
        yield Finding(one.name, version(one.name) or "missing", install([one]), True)
    versions = ", ".join(f"{name} {version(name)}" for name in ("robustmd", "torch", "torchvision"))
    yield Finding("packages", f"{versions}; {len(core) - len(wrong)} of {len(core)} as required")
    for extra in metadata.metadata("robustmd").get_all("Provides-Extra") or ():
        if extra not in FOR_US:
            lacking = [one for one in required(extra) if not _is_there(one)]
            names = ", ".join(one.name for one in lacking)
            found = f"not installed: {names}" if lacking else "installed"
            yield Finding(f"extra {extra}", found, install(lacking) if lacking else "")


def _is_there(one: Requirement) -> bool:
    found = version(one.name)
    return found is not None and one.specifier.contains(found, prereleases=True)


def _machine(config: Config) -> Iterator[Finding]:
    try:
        device = choose_device(config.runtime.device)
    except UserError as error:
        yield Finding("device", config.runtime.device, str(error), True)
    else:
        unused = DRIVER.exists() and not torch.cuda.is_available()
        mend = "a driver is there: install the PyTorch that is built for its CUDA" * unused
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
        yield Finding("device", name, mend, unused)
    threads, most = config.runtime.threads or torch.get_num_threads(), cores()
    mend = f"runtime.threads={most}, or OMP_NUM_THREADS={most}" * (threads > most)
    yield Finding("threads", f"{threads} of a run, {most} cores", mend, threads > most)
    memory = available_gib()
    if memory is not None:
        mend = "end other programs, or jobs=1 training.batch_size=N" * (memory < FREE)
        yield Finding("memory", f"{memory:.1f} GiB free", mend, memory < FREE)


def _folders(config: Config) -> Iterator[Finding]:
    for name in ("data", "cache", "outputs"):
        try:
            folder = config.paths.folder(name)
        except UserError as error:
            yield Finding(f"paths.{name}", "none", str(error), True)
            continue
        there = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(there).free / 2**30
        may = os.access(there, os.W_OK | os.X_OK) and there.is_dir()
        mend = f"another folder: paths.{name}=FOLDER"
        words = f"{folder}: {free:.1f} GiB free{'' if may else ', cannot be written'}"
        is_off = not may or free < FREE
        yield Finding(f"paths.{name}", words, mend * is_off, is_off)


def _files(config: Config) -> Iterator[Finding]:
    for name, schema in DATA.items() if config.paths.data else ():
        parts = schema().at_hand(Path(str(config.paths.data)))
        lacking = [part for part, is_there in parts.items() if not is_there]
        if parts:
            found = f"lacks {', '.join(lacking)}" if lacking else "there"
            yield Finding(f"data={name}", found, f"robustmd data {name}" * bool(lacking))
    for name, schema in BACKBONES.items():
        option = schema.model_construct()  # unchecked: a library may not be there
        if getattr(option, "weights", "none") != "none" and hasattr(option, "published"):
            file = option.published()
            is_there = file.path.is_file()
            found = "there" if is_there else f"lacks {file.path}"
            yield Finding(f"backbone={name}", found, "" if is_there else file.fetch)


def _short_run(overrides: Sequence[str]) -> Finding:
    begun = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix="robustmd-") as folder:
            config = make_config([*SHORT, *overrides])
            config.paths.outputs = folder
            outcome = run(config, Console(file=io.StringIO()))
    except (UserError, OSError, RuntimeError) as error:
        return Finding("a short run", "did not finish", str(error), True)
    seconds = f"{outcome.status} in {time.perf_counter() - begun:.0f} s"
    return Finding(
        "a short run", seconds, outcome.message * bool(outcome.exit_code), bool(outcome.exit_code)
    )
