"""Training from Python, as in a notebook: settings as on the command line, objects by keyword."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from hydra.core.global_hydra import GlobalHydra
from torch import Tensor, nn

from robustmd.config.composing import composed_config
from robustmd.config.plugins import imports_of, load_plugins
from robustmd.config.typed import typed
from robustmd.console import make_console
from robustmd.digest import digest_of
from robustmd.domains.domain_set import DomainSet
from robustmd.errors import UserError
from robustmd.object_parts import Unknown
from robustmd.registry import FROM_PYTHON, LOSSES, Loss
from robustmd.trained_run import Model, Run, load_run
from robustmd.training.run import OnMeasure, run

Domains = DomainSet | Mapping[str, Sequence[Any]]
DIGITS = 12  # of an object's sha256
ALONE = threading.RLock()  # torch's settings and random numbers are the process's


def train(
    *overrides: str,
    domains: Domains | None = None,
    model: Model | None = None,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    name: str | None = None,
    on_measure: OnMeasure | None = None,
) -> Run:
    """Train one model as `robustmd train` with these settings does, or find that it has been.

    The run's files are the command's, byte for byte. An object counts by its content: other
    domains, layers, first weights or code are another run. Torch's and Hydra's settings of the
    caller are as before afterwards; calls from several threads wait for each other.

    Args:
        overrides: settings as on the command line: "method=opt", "training.iterations=100".
        domains: in place of data=NAME; a DomainSet, or what `DomainSet.from_tensors` takes: {name:
            (train x, train y, test x, test y)}, or {name: (train, test)} of torch's Datasets.
        model: in place of backbone=NAME; a module, float [n, 3, H, W] with pixels (u − 0.5)/0.25,
            u = pixel/255 (or features or tokens [n, …]) -> logits [n, C]. It is copied; training
            begins at its weights, whatever the seed. Or a class or function that makes it, called
            under the run's seed, with a `BackboneFacts` if it needs an argument.
        loss: in place of training.loss=NAME: (outputs [n, C], labels [n] or [n, L]) -> [n].
        name: stands for the parts of model and loss that cannot be compared with those of an
            earlier run, as a lock; for them you vouch that the same name means the same.
        on_measure: called after each measurement with the iteration and {split: {domain: {"loss":
            …, "accuracy": …}}}, for logging or pruning; what it raises ends the run as interrupted,
            with a checkpoint.

    Raises:
        UserError: the settings, the data or the output folder do not allow it; one line.
        KeyboardInterrupt: the run was stopped; the same call goes on with it.
    """
    _check(overrides, domains, model, loss)
    objects = {"model": model, "loss": loss}
    names = _names({key: value for key, value in objects.items() if value is not None}, name)
    known = None if domains is None else _by_content(domains)
    if loss is not None:
        _register(loss, names["loss"])
    given = [
        *overrides,
        *([f"data={FROM_PYTHON}"] if known is not None else []),
        *([f"backbone={FROM_PYTHON}"] if model is not None else []),
        *([f"training.loss={names['loss']}"] if loss is not None else []),
    ]
    with ALONE, _as_in_a_new_process():
        load_plugins(imports_of(given))
        config = typed(composed_config(given))
        if known is not None:
            config.data.given, config.data.fingerprint = known, known.fingerprint
        if model is not None:
            config.backbone.given, config.backbone.object = model, names["model"]
        console = make_console()
        if isinstance(model, nn.Module) and any(text.startswith("seed=") for text in overrides):
            console.print(
                "warning: model= is a module, so runs of all seeds begin with its weights; give "
                "the class or a function that makes it, as model=Net, and each seed draws its own",
                soft_wrap=True,
            )
        outcome = run(config, console, given, on_measure=on_measure)
    message = outcome.message
    if outcome.status == "kept" and (known or names):
        same = [f"{key} {named}" for key, named in names.items()]
        same += [f"domains {known.fingerprint[:DIGITS]}"] if known else []
        message += f"; the same {', '.join(same)}"
    console.print(f"  {message}", soft_wrap=True)
    if outcome.status == "interrupted":
        raise KeyboardInterrupt(outcome.message)
    return load_run(outcome.directory, model)


def _check(overrides: Sequence[Any], domains: object, model: object, loss: object) -> None:
    """Raises UserError for arguments of another kind, or that say a thing twice."""
    kinds = (
        ("domains", domains, isinstance(domains, DomainSet | Mapping), "a DomainSet or a dict"),
        (
            "model",
            model,
            callable(model),
            "a torch.nn.Module, or a class or function that makes one",
        ),
        ("loss", loss, callable(loss), "a function of outputs and labels"),
    )
    for keyword, value, is_right, allowed in kinds:
        if value is not None and not is_right:
            raise UserError(f"{keyword}=…: is {type(value).__name__}; must be {allowed}")
    for text in overrides:
        if not isinstance(text, str):
            raise UserError(f'{text!r}: is {type(text).__name__}; settings are text, as "seed=1"')
        if text.startswith(("-", "experiment=", "hydra")):
            raise UserError(f"{text}: train(…) makes one run; a sweep is a loop, or the command's")
        for key, keyword, value in (
            ("data", "domains", domains),
            ("backbone", "model", model),
            ("training.loss", "loss", loss),
        ):
            if value is not None and text.startswith(f"{key}="):
                raise UserError(f"{key}=… and {keyword}= are both given; leave one out")


def _names(objects: Mapping[str, Any], name: str | None) -> dict[str, str]:
    """{"model": "Net_1a2b3c4d5e6f", …}: readable, with a digest behind. Raises UserError."""
    names, is_needed = dict[str, str](), False
    for keyword, value in objects.items():
        named = getattr(value, "func", value)  # of functools.partial
        title = re.sub(r"\W", "", getattr(named, "__name__", type(named).__name__), flags=re.ASCII)
        try:
            sha256, needed_here = digest_of(value, name or "")
        except Unknown as part:
            raise UserError(
                f"{keyword}={title}: has {part}, which cannot be compared with that of an earlier "
                'run; give name="…", with which you vouch that it is the same while the name is'
            ) from None
        names[keyword] = f"{title}_{sha256[:DIGITS]}"
        is_needed = is_needed or needed_here
    if name is not None and not is_needed:
        raise UserError(f"name={name}: nothing given needs it; leave it out")
    return names


def _by_content(domains: Domains) -> DomainSet:
    """The domains with a fingerprint of all that they hold. Raises UserError."""
    known = domains if isinstance(domains, DomainSet) else DomainSet.from_tensors(domains)
    sha256, _ = digest_of(replace(known, notes=(), files=None))
    return replace(known, fingerprint=sha256)


def _register(loss: Callable[[Tensor, Tensor], Tensor], name: str) -> None:
    """Let `training.loss` take it. Its digest is its name, so the file that it stands in does not
    count: a registered loss' file does."""

    def of(outputs: Tensor, labels: Tensor) -> Tensor:
        return loss(outputs, labels)

    of.__qualname__ = name
    LOSSES[name] = Loss(name, "", of)


@contextmanager
def _as_in_a_new_process() -> Iterator[None]:
    """Within it torch and Hydra are as in a new process; then as the caller had set them."""
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    hydra, cudnn = GlobalHydra.instance().hydra, torch.backends.cudnn
    products, tf32 = torch.get_float32_matmul_precision(), cudnn.allow_tf32
    deterministic = torch.get_deterministic_debug_mode()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        stack.enter_context(torch.random.fork_rng(devices=[]))
        torch.set_default_dtype(torch.float32)
        GlobalHydra.instance().hydra = None
        try:
            yield
        finally:
            GlobalHydra.instance().hydra = hydra
            torch.set_num_threads(threads)
            torch.set_default_dtype(dtype)
            torch.set_float32_matmul_precision(products)
            cudnn.allow_tf32 = tf32
            if torch.get_deterministic_debug_mode() != deterministic:
                torch.set_deterministic_debug_mode(deterministic)
