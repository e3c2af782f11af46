"""What a run computes on, and what it says of itself and its data for those who come later:
environment.json, summary.json, examples.png, its last line."""

from __future__ import annotations

import importlib.metadata
import io
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import robustmd
from robustmd.config.settings import Runtime
from robustmd.domains.domain import EMBEDDABLE, DomainSet
from robustmd.domains.sheet import draw_sheet, evenly
from robustmd.errors import UserError, listed
from robustmd.registry import METHODS, METRICS
from robustmd.training.history import TRAINING_PARTS

if TYPE_CHECKING:
    from robustmd.training.session import Session

PACKAGES = ("torch", "torchvision", "numpy", "hydra-core", "omegaconf", "scipy", "pandas")
BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})  # CPUs where bfloat16 is faster, not slower
TOO_LITTLE = ("can't allocate memory", "not enough memory", "out of memory", "bad_alloc")
BEYOND_64_BITS = ("array is too big", "Overflow when unpacking")  # NumPy's and PyTorch's words
PICTURES, SIDE = 40, 48  # of examples.png, which stays below 150 kB but for noise
DOMAINS = 12


# --- device, arithmetic, memory ------------------------------------------------------------------


def choose_device(name: str) -> torch.device:
    """`runtime.device` as a device that is there. Raises UserError that says which are."""
    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    there = ["cpu", *(kind for kind, is_there in found.items() if is_there)]
    if name == "auto":
        return torch.device(there[1] if len(there) > 1 else "cpu")
    kind, _, index = name.partition(":")
    if kind not in there or (index and int(index) >= torch.cuda.device_count()):
        raise UserError(
            f"runtime.device={name}: no such device on this machine; it has: {', '.join(there)}"
        )
    return torch.device(name)


def resolve_precision(name: str, device: torch.device) -> str:
    """`runtime.precision` as one of fp32, tf32, bf16: auto is bf16 on GPUs that have it and on CPUs
    with AVX512-BF16 or AMX, else fp32. Raises UserError: the device has no such arithmetic."""
    if name == "tf32" and device.type != "cuda":
        raise UserError(f"runtime.precision=tf32: only CUDA has it, not {device}; fp32, bf16, auto")
    if name == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise UserError(f"runtime.precision=bf16: {device} has none; allowed here: fp32, tf32")
    if name != "auto":
        return name
    return "bf16" if _has_fast_bf16(device) else "fp32"


def _has_fast_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and not BF16_FLAGS.isdisjoint(_cpu("flags").split())


def set_up(runtime: Runtime, device: torch.device) -> str:
    """Let torch compute as `runtime` says, on the device. Returns the precision; with tf32 CUDA
    rounds the factors of float32 products to 10 bits. Raises UserError: the device has it not."""
    if runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    precision = resolve_precision(runtime.precision, device)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    return precision


@contextmanager
def memory_for(what: str) -> Iterator[None]:
    """Within it an allocation that fails, on the CPU or a device, is a UserError: too little memory
    for `what`, which says what to do about it."""
    try:
        yield
    except (MemoryError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
            words in str(error) for words in (*TOO_LITTLE, *BEYOND_64_BITS)
        ):
            raise UserError(f"too little memory for {what}") from None
        raise


# --- environment.json ----------------------------------------------------------------------------


def describe(device: torch.device) -> dict[str, Any]:
    """environment.json, but for what the run itself adds."""
    on_cuda = device.type == "cuda"
    cpu = _cpu("model name") or platform.processor()
    return {
        "robustmd": robustmd.__version__,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "cpu": f"{cpu} ({os.cpu_count()} cores)",
        "device": torch.cuda.get_device_name(device) if on_cuda else str(device),
        "threads": torch.get_num_threads(),
        **_commit(),
    }


def version(package: str) -> str | None:
    """Of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu(fact: str) -> str:
    """What Linux says of the first processor; nothing where there is no Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(fact)), "")


@cache
def _commit() -> dict[str, Any]:
    """The commit of the checkout that the package runs from; empty where it is installed."""
    root = Path(robustmd.__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return {"git_commit": None, "git_dirty": None}
    try:
        commit, changes = (
            subprocess.check_output(["git", "-C", str(root), *asked], text=True, timeout=10)
            for asked in (["rev-parse", "HEAD"], ["status", "--porcelain"])
        )
        return {"git_commit": commit.strip(), "git_dirty": bool(changes.strip())}
    except (OSError, subprocess.SubprocessError):
        return {"git_commit": None, "git_dirty": None}


# --- summary.json --------------------------------------------------------------------------------


def summarise(
    session: Session, status: str, message: str | None, notes: list[str], spent: dict[str, float]
) -> dict[str, Any]:
    """What summary.json holds. `message`: why it ended; `notes`: what is to be known of its data
    and settings; `spent`: seconds of the parts that the session does not time itself."""
    plan, clock, learner = session.plan, session.clock, session.learner
    config = plan.config
    summary: dict[str, Any] = {
        "status": status,
        "message": message,
        "data": config.data.name,
        "method": config.method.name,
        "seed": config.seed,
        "domains": list(plan.domains.names),
        "trained": list(plan.trained),
        "unseen": list(plan.unseen),
        "classes": list(plan.domains.classes),
        "image_size": list(plan.domains.image_size),
        **({"tokens": True} if plan.domains[0].train.are_tokens else {}),
        "licences": {domain.name: domain.licence for domain in plan.domains},
        "iterations": config.training.iterations,
        "iterations_done": learner.iteration,
        "parameters": learner.parameters(),
        "effective_batch": session.parts.batches.effective_batch,
        "domains_per_batch": plan.domains_per_batch,
        "measured_examples": {
            name: len(session.subset.get(name, split))
            for name, split in session.splits["train"].items()
        },
    }
    if names := config.evaluation.metrics:  # what they are, so that who reads it needs not the code
        facts = ("unit", "better", "decimals")
        summary["metrics"] = {
            name: {fact: getattr(METRICS[name], fact) for fact in facts} for name in names
        }
    if config.training.loss != "cross_entropy":
        loss = session.measured_loss
        targets = "numbers" if plan.domains.are_numbers else "classes"
        summary["loss"] = {"name": loss.name, "unit": loss.unit, "targets": targets}
    parts = ("adversary", "data", "measurement", "start")
    summary["seconds"] = {
        "training": clock.seconds(*TRAINING_PARTS),
        **{part: clock.seconds(part) for part in parts},
        **spent,
    }
    # `final` has the constant predictions, for a report that gathers those of many runs.
    said = session.warnings().items()
    summary["warnings"] = [line for kind, line in said if kind != "constant"]
    summary["notes"] = [*notes, *([session.early] if session.early else [])]
    if session.state.best.is_watched:
        summary["best"] = session.state.best.summary()
        summary["stopped_early"] = bool(session.early)
    if learner.regret is not None and learner.iteration > 0 and status != "diverged":
        summary["regret"] = learner.regret.summary(learner.adversary)
    if skipped := int(learner.adversary.skipped):
        summary["skipped_updates"] = skipped
    return summary | _final(session) if status == "finished" else summary


def _final(session: Session) -> dict[str, Any]:
    """What only a finished run has."""
    plan, learner, measures = session.plan, session.learner, session.measures
    found: dict[str, Any] = {
        "sha256": plan.directory.checksums(
            predictions=plan.config.evaluation.predictions, best=session.state.best.keeps
        ),
        "final": {
            split: {name: m.as_dict() for name, m in of_split.items()}
            for split, of_split in measures.items()
        },
        "worst": {split: session.worst(split) for split in measures},
    }
    if plan.unseen:
        found["unseen_worst"] = {split: session.worst(split, unseen=True) for split in measures}
    weights = {
        "weights": learner.adversary.weights.tolist(),
        "weights_mean": [total / learner.iteration for total in session.state.weight_sums],
    }
    if METHODS.flag(plan.config.method.name, "averages"):  # Alg. 1 returns p̄ with W̄
        weights["weights_averaged"] = learner.adversary.average.tolist()  # type: ignore[operator]
    named = {key: dict(zip(plan.trained, p, strict=True)) for key, p in weights.items()}
    return found | named


def verdict(session: Session) -> str:
    """One line for the person who waited."""
    unseen = session.plan.unseen
    beside = ""
    if unseen:
        which = "worst unseen" if len(unseen) > 1 else "unseen"
        beside = f"{which} {_test_words(session.worst('test', unseen=True))} ({listed(unseen)}), "
    return (
        f"worst training loss {session.worst('train')['loss']:.4f}, "
        f"worst {_test_words(session.worst('test'))}, "
        f"{beside}training {session.clock.seconds(*TRAINING_PARTS):.1f} s"
    )


def _test_words(worst: dict[str, float]) -> str:
    if "accuracy" in worst:
        return f"test accuracy {worst['accuracy']:.2f} %"
    return f"test loss {worst['loss']:.4f}"  # of numbers, which have no accuracy


# --- examples.png --------------------------------------------------------------------------------


def example_sheet(domains: DomainSet) -> bytes | None:
    """A PNG with examples of the domains whose licence lets others see them; None without any."""
    shown = [domain.name for domain in domains if domain.licence in EMBEDDABLE]
    if not shown or domains[0].train.are_features:
        return None
    stream = io.BytesIO()
    draw_sheet(domains, stream, only=evenly(shown, DOMAINS), most=PICTURES, side=SIDE)
    return stream.getvalue()
