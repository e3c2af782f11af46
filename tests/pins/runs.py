"""Pinned training: what short runs write, undisturbed and after a signal."""

import contextlib
import csv
import hashlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import robustmd

TESTS = Path(__file__).parents[1]
SHORT = [
    "imports=[pins.options]",
    "paths.data=data",
    "paths.cache=cache",
    "training.iterations=12",
    "training.batch_size=20",
    "runtime.threads=1",
    "runtime.device=cpu",
    "evaluation.every=4",
    "logging.every=3",
    "checkpoint.every=5",
]
TWO = ["data=pinned", "backbone.width=0.05"]
CONVNET = ["data=pinned", "backbone=convnet", "backbone.width=0.5"]
ADAMW = [
    "training.optimizer=adamw",
    "training.learning_rate=0.003",
    "training.head_learning_rate=0.01",
    "training.decay_all=false",
    "training.schedule=linear",
    "training.warmup=6",
    "training.clip_norm=1",
    "training.ema=0.9",
]
PATIENCE = [
    "training.learning_rate=0.6",
    "training.schedule=constant",
    "evaluation.every=2",
    "data.validation=0.2",
    "evaluation.keep=best_val",
    "training.patience=2",
    "training.iterations=40",
]
DRAWN = ["data.kind=ten", "training.domains_per_batch=5"]
FOLDER = ["data=folder", "data.root=folder", "backbone.width=0.05"]
DIGITS = ["data.verify=false", "backbone=alexnet", "backbone.width=0.05"]
PETS = ["data=pets", "data.classes=[chihuahua,egyptian_mau,persian]", "data.size=40"]
PETS += ["data.crop=32", "backbone=convnet", "backbone.width=0.5"]
METHODS = "even ot kl minimax afl groupdro topk term cvar vrex famo optimistic erm dwa uncertainty"

CONFIGURATIONS = {
    "opt": TWO,
    **{name: [*TWO, f"method={name}"] for name in METHODS.split()},
    "best_response": [*TWO, "method=best_response", "method.every=4"],
    "oracle": [*TWO, "method=oracle", "method.every=4"],
    "individual": [*TWO, "method=individual", "method.domain=1"],
    "opt, constant step and prior": [
        *TWO,
        "method.step=constant",
        "method.eta=0.1",
        "method.prior=[0.3,0.7]",
    ],
    "adamw, ema, clip, warmup, head rate": [*TWO, *ADAMW],
    "nadam": [*TWO, "training.optimizer=nadam", "training.learning_rate=0.002"],
    "rmsprop": [*TWO, "training.optimizer=rmsprop", "training.learning_rate=0.002"],
    "step schedule": [*TWO, "training.schedule=step", "training.milestones=[3,8]"],
    "convnet with batch norm, ema": [*CONVNET, "training.ema=0.9"],
    "dropout, frozen batch norm": [*CONVNET, "backbone.dropout=0.5", "backbone.freeze_bn=true"],
    "frozen features": [*CONVNET, "backbone.freeze=features", "training.learning_rate=0.1"],
    "keep best, patience": [*TWO, *PATIENCE],
    "metrics": [*TWO, "evaluation.metrics=[ece,macro_f1,brier,pinned_top2]"],
    "a measured part": [*TWO, "evaluation.examples=10"],
    "label smoothing": [*TWO, "training.label_smoothing=0.3"],
    "sizes": [*TWO, "data.sizes=[40,20]", "method=erm"],
    "bf16": [*TWO, "runtime.precision=bf16"],
    "augment=standard": [*TWO, "data.augment=standard"],
    "own augmentation": [*TWO, "data.augment=pinned_shift"],
    "30 domains, 20 drawn": [*TWO, "data.kind=thirty"],
    "5 of 10 drawn, opt": [*TWO, *DRAWN],
    "5 of 10 drawn, cvar": [*TWO, *DRAWN, "method=cvar"],
    "unseen": [*TWO, "data.kind=ten", "data.unseen=[d3,d4]"],
    "folder": FOLDER,
    "labels per domain": [*FOLDER, "data.labels=per_domain"],
    "own loss": [*TWO, "training.loss=pinned_hinge"],
    "features": ["data=pinned", "data.kind=features", "backbone=pinned_linear"],
    "tokens": ["data=pinned", "data.kind=tokens", "backbone=pinned_embedding"],
    "numbers": [
        "data=pinned",
        "data.kind=numbers",
        "backbone=pinned_linear",
        "training.loss=pinned_squares",
        "evaluation.metrics=[pinned_error]",
    ],
    "noise": ["data=digits_noise", *DIGITS, "data.sigmas=[0,20,40]", "seed=3"],
    "rotations": ["data=digits_rotated", *DIGITS, "data.angles=[0,30,90]", "data.sigmas=[0,20]"],
    "rotated images that ship": [
        "data=typed_turned",
        "training.batch_size=24",
        "training.warmup=3",
        "training.learning_rate=0.03",
    ],
    "digits": ["data=digits", *DIGITS, "data.validation=0.2"],
    "crops and flips": PETS,
}
SIGNALLED = {
    "signalled opt": TWO,
    "signalled adamw, ema": [*TWO, *ADAMW],
    "signalled dropout": [*CONVNET, "backbone.dropout=0.5"],
    "signalled keep best, patience": [
        *TWO,
        *PATIENCE,
        "training.learning_rate=0.1",
        "training.patience=8",
    ],
    "signalled drawn domains": [*TWO, *DRAWN],
}
CONFIGURATIONS |= {name: [*s, "method=pinned_opt"] for name, s in SIGNALLED.items()}
SIGNALS = ["SIGTERM:6", "SIGKILL:8", "SIGKILL:11"]


def train(name: str, folder: Path) -> dict[str, Any]:
    """What a configuration's run writes, trained from Python in the working folder."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        run = robustmd.train(*SHORT, *CONFIGURATIONS[name], f"paths.outputs={folder}")
    return record_of(run.path)


def train_with_signal(name: str, sent: str, folder: Path) -> dict[str, Any]:
    """The same from the command line, where the first process gets a signal and the second ends."""
    command = [sys.executable, "-m", "robustmd", "train", *SHORT, *CONFIGURATIONS[name]]
    command.append(f"paths.outputs={folder}")
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}
    first = subprocess.run(
        command, env={**environment, "PINS_SIGNAL": sent}, capture_output=True, check=False
    )
    assert first.returncode in (143, -9), first.stderr.decode()
    second = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert second.returncode == 0, second.stderr.decode()
    (directory,) = folder.glob("*/*/*/seed=*")
    return record_of(directory)


def record_of(directory: Path) -> dict[str, Any]:
    """The rows of its CSV files without seconds; a hash and values of each tensor of final.pt."""
    record: dict[str, Any] = {
        name: rows
        for name in ("metrics.csv", "weights.csv", "measures.csv")
        if (rows := rows_of(directory / name))
    }
    state = torch.load(directory / "checkpoints" / "final.pt", weights_only=True)
    return {**record, "final.pt": {name: digest(value.numpy()) for name, value in state.items()}}


def rows_of(path: Path) -> list[str]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    kept = [i for i, name in enumerate(header) if name != "seconds"]
    return [",".join(row[i] for i in kept) for row in (header, *rows)]


def digest(array: np.ndarray) -> dict[str, Any]:
    """sha256 of an array's bytes; sum, sum of squares and five of its values."""
    flat = array.astype(np.float64).ravel()
    some = flat[np.linspace(0, len(flat) - 1, 5).astype(int)]
    return {
        "shape": f"{array.dtype}{list(array.shape)}",
        "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16],
        "values": [float(flat.sum()), float((flat**2).sum()), *map(float, some)],
    }
