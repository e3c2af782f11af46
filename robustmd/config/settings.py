"""What can be set: a model of the whole config. What depends on several parts is in check.py.

This file holds names, types and ranges of what is in no option's class, with the *recorded* default
of each key: it is what a run's identity leaves out, so it never changes once released (a YAML in
`conf/` may choose another value, or a key is added with a default that means "as before").
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import robustmd.augmentations
import robustmd.backbones
import robustmd.domains.digits_mini
import robustmd.domains.folder
import robustmd.domains.from_python
import robustmd.domains.noise
import robustmd.losses
import robustmd.methods  # noqa: F401 - each registers its options
from robustmd.config.ranges import (
    BELOW_ONE,
    BETAS,
    COUNT,
    COUNT_OR_ZERO,
    DECAY,
    DEVICE,
    MILESTONES,
    MODULES,
    POSITIVE,
    RATE,
    SEED,
    SHARE,
    THREADS,
    TRACKERS,
    key,
    one_of,
)
from robustmd.errors import UserError
from robustmd.registry import BACKBONES, DATA, METHODS, Registry, Settings

MOMENTUM = 0.9
# torch.optim's, in small letters, each with the key that is its own
OPTIMIZERS: Mapping[str, str | None] = {
    "sgd": "momentum",
    "adam": "betas",
    "adamw": "betas",
    "nadam": "betas",
    "radam": "betas",
    "adamax": "betas",
    "rmsprop": "momentum",
    "adadelta": None,
}
TUNED = ("learning_rate", "momentum", "weight_decay")  # of training: each method has its best


class Training(Settings):
    iterations: int = key(5000, COUNT, "T: steps of the model")
    batch_size: int = key(200, COUNT, "B: images a step, shared equally by the domains")
    domains_per_batch: int | None = key(
        None, COUNT, "M < K of them, drawn anew; null: all, if B has room"
    )
    optimizer: str = key("sgd", one_of(*OPTIMIZERS), "torch's of that name, in small letters")
    learning_rate: float = key(0.01, RATE, "η of all parameters, before the schedule")
    head_learning_rate: float | None = key(
        None, RATE, "η of the last layers, which weights leave random"
    )
    momentum: float = key(MOMENTUM, BELOW_ONE, "of sgd and rmsprop")
    betas: list[float] | None = key(None, BETAS, "of adam's kind; null: torch's")
    weight_decay: float = key(5e-4, DECAY, "of the gradient; adamw: of the weights")
    decay_all: bool = key(True, help="false: no decay of biases and norms")
    schedule: str = key(
        "constant",
        one_of("constant", "cosine", "linear", "step"),
        "of the learning rate, after the warm-up; linear and cosine end at 0",
    )
    milestones: list[int] = key([], MILESTONES, "of schedule=step: iterations, each times gamma")
    gamma: float = key(0.1, SHARE, "γ of schedule=step")
    warmup: int = key(0, COUNT_OR_ZERO, "w iterations in which the rate rises, (t + 1)/w of it")
    clip_norm: float | None = key(None, POSITIVE, "a gradient of a larger norm is shortened to it")
    ema: float | None = key(None, SHARE, "decay of a moving average of the model, as 0.999")
    patience: int | None = key(None, COUNT, "ends after so many without a better validation")
    loss: str = key("cross_entropy", help="of an example, in training and measured; or your own")
    label_smoothing: float = key(0.0, BELOW_ONE, "ε of the cross entropy that is trained on")

    def check(self) -> None:
        """What depends on two keys. Raises UserError."""
        name, own = self.optimizer, OPTIMIZERS[self.optimizer]
        changed = {"momentum": self.momentum != MOMENTUM, "betas": self.betas is not None}
        for given in (one for one, is_changed in changed.items() if is_changed and one != own):
            raise UserError(
                f"training.{given}={getattr(self, given)}: training.optimizer={name} has no {given}"
                f"{f', but {own}' if own else ''}; leave it out"
            )
        if (self.schedule == "step") != bool(self.milestones):
            does = "has none; leave them out" if self.milestones else "needs some, as [3000,4000]"
            raise UserError(
                f"training.milestones={self.milestones}: training.schedule={self.schedule} {does}"
            )


class Evaluation(Settings):
    every: int = key(250, COUNT, "iterations between measurements of all splits")
    examples: int = key(20000, COUNT, "of each training set; the last measurement takes all")
    predictions: bool = key(True, help="write predictions.npz at the end")
    metrics: list[str] = key([], help="measured beside loss and accuracy, as [macro_f1,ece]")
    keep: str = key("last", one_of("last", "best_val"), "best_val: the best model beside the last")
    best_by: str = key("worst_loss", help="worst_, worst_tenth_ or mean_, and a metric")


class Runtime(Settings):
    device: str = key("auto", DEVICE, "where it trains; auto: a GPU where there is one")
    precision: str = key(
        "fp32",
        one_of("fp32", "tf32", "bf16", "auto"),
        "of the model's products; auto: bf16 where that is fast",
    )
    threads: int | None = key(None, THREADS, "of the CPU; null: 1 beside other runs, else torch's")
    graph: str = key(
        "auto", one_of("auto", "off"), "auto: on CUDA an iteration is captured once and replayed"
    )
    compile: bool = key(False, help="torch.compile of the training passes")
    deterministic: bool = key(False, help="deterministic kernels only")


class Logging(Settings):
    every: int = key(10, COUNT, "iterations between rows of weights.csv")


class Checkpoint(Settings):
    """Whichever comes first."""

    every: int = key(500, COUNT, "iterations between checkpoints")
    seconds: float | None = key(None, POSITIVE, "or since the last one; null: iterations alone")


class Paths(Settings):
    data: str | None = key(None, help="downloaded or own files; null: ROBUSTMD_DATA")
    cache: str | None = key(None, help="prepared stores; null: ROBUSTMD_CACHE")
    outputs: str = key("outputs", help="folder of the run directories")

    def folder(self, name: str) -> Path:
        """`data` or `cache`. Raises UserError: not given, and the user has no home for it."""
        found: str | None = getattr(self, name)
        if found is None:
            raise UserError(f"paths.{name}: is needed, as paths.{name}=FOLDER: there is no HOME")
        return Path(found)


OPTIONS: Mapping[str, Registry] = {"data": DATA, "backbone": BACKBONES, "method": METHODS}
GROUPS = (*OPTIONS, "experiment")  # folders of conf/
SECTIONS: Mapping[str, type] = {
    "training": Training,
    "evaluation": Evaluation,
    "runtime": Runtime,
    "logging": Logging,
    "checkpoint": Checkpoint,
    "paths": Paths,
}


class Top(Settings):
    """The keys that are in no group."""

    seed: int = key(0, SEED, "of initial weights, batches and all else that is drawn")
    force: bool = key(False, help="train again although a finished run is there")
    resume: bool = key(True, help="false: start a run that was cut off from its beginning")
    jobs: int | None = key(None, COUNT, "of a sweep, side by side; null: one a core, or a GPU")
    jobs_per_device: int = key(1, COUNT, "runs that share a GPU, where jobs is null")
    imports: list[str] = key([], MODULES, "modules with methods, data sets, … of your own")
    tracking: list[str] = key([], TRACKERS, "who is told of the run: tensorboard, mlflow, wandb, …")
    tracking_model: bool = key(False, help="trackers get the final model's file too")


class Config(Top):
    """The whole of a run's settings; `data`, `backbone`, `method` are one option each."""

    data: Any
    backbone: Any
    method: Any
    training: Training
    evaluation: Evaluation
    runtime: Runtime
    logging: Logging
    checkpoint: Checkpoint
    paths: Paths


@cache
def defaults_of(schema: type[Settings]) -> dict[str, Any]:
    """Every key's recorded default, as plain data; not to be changed."""
    return schema.model_construct().model_dump()
