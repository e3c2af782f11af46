"""Training from Python, as in a notebook: settings as on the command line, objects by keyword."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from robustmd.config.check import make_config
from robustmd.config.plugins import imports_of, load_plugins
from robustmd.console import make_console
from robustmd.domains.domain_set import DomainSet
from robustmd.errors import UserError
from robustmd.registry import FROM_PYTHON, LOSSES, Loss
from robustmd.trained_run import Run, load_run
from robustmd.training.run import OnMeasure, run

Domains = DomainSet | Mapping[str, Sequence[Any]]


def train(
    *overrides: str,
    domains: Domains | None = None,
    model: nn.Module | None = None,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    on_measure: OnMeasure | None = None,
) -> Run:
    """Train one model as `robustmd train` with these settings does, or find that it has been.

    The run's files are the command's, byte for byte. What is given as an object counts by its
    content: other domains, layers or first weights are another run.

    Args:
        overrides: settings as on the command line: "method=opt", "training.iterations=100".
        domains: in place of data=NAME; a DomainSet, or what `DomainSet.from_tensors` takes: {name:
            (train x, train y, test x, test y)}, or {name: (train, test)} of torch's Datasets.
        model: in place of backbone=NAME; float [n, 3, H, W] with pixels (u − 0.5)/0.25,
            u = pixel/255 (or features or tokens [n, …]) -> logits [n, C]. It is copied; training
            begins at its weights.
        loss: in place of training.loss=NAME: (outputs [n, C], labels [n] or [n, C]) -> [n], a
            function whose source can be read.
        on_measure: called after each measurement with the iteration and {split: {domain: {"loss":
            …, "accuracy": …}}}, for logging or pruning; what it raises ends the run as interrupted,
            with a checkpoint.

    Raises:
        UserError: the settings, the data or the output folder do not allow it; one line.
        KeyboardInterrupt: the run was stopped; the same call goes on with it.
    """
    if model is not None and not isinstance(model, nn.Module):
        raise UserError(f"model=…: is {type(model).__name__}; must be a torch.nn.Module")
    if domains is not None and not isinstance(domains, DomainSet | Mapping):
        raise UserError(f"domains=…: is {type(domains).__name__}; must be a DomainSet or a dict")
    for text in overrides:
        if not isinstance(text, str):
            raise UserError(f'{text!r}: is {type(text).__name__}; settings are text, as "seed=1"')
        if text.startswith(("-", "experiment=", "hydra")):
            raise UserError(f"{text}: train(…) makes one run; a sweep is a loop, or the command's")
    given = list(overrides)
    objects: tuple[tuple[str, str, Any], ...] = (
        ("data", "domains", domains),
        ("backbone", "model", model),
        ("training.loss", "loss", loss),
    )
    for key, name, value in objects:
        if value is not None and any(text.startswith(f"{key}=") for text in overrides):
            raise UserError(f"{key}=… and {name}= are both given; leave one out")
        if value is not None:
            given.append(f"{key}={_registered(value) if key == 'training.loss' else FROM_PYTHON}")
    load_plugins(imports_of(given))
    config = make_config(given)
    if domains is not None:
        known = domains if isinstance(domains, DomainSet) else DomainSet.from_tensors(domains)
        config.data.given, config.data.fingerprint = known, known.fingerprint
    if model is not None:
        config.backbone.given, config.backbone.sha256 = model, _sha256_of(model)
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers are not ours
        console = make_console()
        outcome = run(config, console, given, on_measure=on_measure)
    console.print(f"  {outcome.message}", soft_wrap=True)
    if outcome.status == "interrupted":
        raise KeyboardInterrupt(outcome.message)
    return load_run(outcome.directory, model)


def _sha256_of(model: nn.Module) -> str:
    """Of a module's layers, as they print, the source of those that are not torch's, the names,
    types and values of its state, and what of it does not train."""
    digest = hashlib.sha256(repr(model).encode())
    for kind in dict.fromkeys(type(one) for one in model.modules()):
        if kind.__module__.partition(".")[0] != "torch":
            with contextlib.suppress(OSError, TypeError):  # it was typed where nobody keeps it
                digest.update(inspect.getsource(kind).encode())
    for name, value in model.state_dict().items():
        digest.update(f"{name} {value.dtype} {list(value.shape)}".encode())
        digest.update(
            value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        )
    fixed = [name for name, one in model.named_parameters() if not one.requires_grad]
    digest.update(",".join(fixed).encode())
    return digest.hexdigest()


def _registered(loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> str:
    """The name that a loss gets from its source, and from the values that it takes from outside."""
    try:
        source = inspect.getsource(loss)
        outside = inspect.getclosurevars(loss)
    except (OSError, TypeError):
        raise UserError(
            "loss=…: is no function whose source can be read; register it by @robustmd.loss in a "
            "file, and name it by training.loss"
        ) from None
    plain = {
        name: value
        for name, value in {**outside.globals, **outside.nonlocals}.items()
        if isinstance(value, int | float | str | tuple | list)
    }
    text = f"{inspect.cleandoc(source)}\n{sorted(plain.items())}"
    name = f"{FROM_PYTHON}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    LOSSES[name] = Loss(name, "", loss)
    return name
