"""The door: how methods, data sets, backbones, metrics and augmentations come in, ours and others'.

    @robustmd.method("tilt")
    class Tilt(robustmd.Settings):
        first: float = 0.7

        def build(self, facts): ...

registers `method=tilt` with the key `method.first`. What is built in registers by the same
decorators; no list elsewhere names it. docs/own_code.md shows all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin
from unicodedata import normalize

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from robustmd.config.ranges import BELOW_ONE, NAMES, SIZES, allowed_of, key, one_of
from robustmd.errors import UserError
from robustmd.facts import BackboneFacts, DataFacts, FinishedRuns, MethodFacts  # noqa: F401


class Settings(BaseModel):
    """What an option can be set to: annotated keys with defaults.

    A wrong type, a value outside a key's range and an unknown key are refused.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_as_text(cls, value: Any, key_: ValidationInfo) -> Any:
        """A name or path of digits alone comes as a number, and from Python a path as a Path."""
        kind = cls.model_fields[str(key_.field_name)].annotation
        if kind == list[str] and isinstance(value, list):
            return [str(one) if type(one) in (int, float) else one for one in value]
        is_text = kind in (str, str | None) and (
            type(value) in (int, float) or isinstance(value, Path)
        )
        return str(value) if is_text else value

    @field_validator("*")
    @classmethod
    def _in_range(cls, value: Any, key_: ValidationInfo) -> Any:
        allowed = allowed_of(cls.model_fields[str(key_.field_name)])
        if value is not None and not allowed.holds(value):
            raise ValueError(f"must be {allowed.words}")
        return value

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        self.check()
        return self

    def check(self) -> None:
        """What depends on two keys. Raises UserError, or ValueError whose text follows
        "method=<name>: "."""

    def leaves(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """(dotted key, value) of every setting, nested ones included."""
        for name, item in type(self).model_fields.items():
            value = getattr(self, name)
            if isinstance(value, Settings):
                yield from value.leaves(f"{prefix}{name}.")
            elif not item.exclude:
                yield prefix + name, value


class Method(Settings):
    """What every method has."""

    name: str = ""

    def trained(self, domains: Sequence[str]) -> tuple[str, ...]:
        """Which of the domains that may be trained on it trains on."""
        return tuple(domains)

    def settled(self, trained: Sequence[str]) -> Self:
        """The same for these domains, checked against them, numbers in place of what stands for
        them. Raises UserError."""
        return self

    def filled(self, runs: FinishedRuns) -> tuple[Self, str]:
        """The same with the numbers that it takes from finished runs, and a note of which runs; no
        note where it takes none. Raises UserError."""
        return self, ""


class Backbone(Settings):
    """What every backbone has."""

    name: str = ""
    freeze: str = key("none", one_of("none", "features"), "features: train the last layer alone")
    freeze_bn: bool = key(False, help="batch norm's statistics stay; its scale and shift learn")
    dropout: float | None = key(None, BELOW_ONE, "of its own dropout layers, or before its head")

    def settled(self, trained: Sequence[str]) -> Self:
        """As a method's."""
        return self


class Data(Settings):
    """What every data set has."""

    name: str = ""
    unseen: list[str] = key([], NAMES, "domains kept out of training, and measured all the same")
    sizes: list[int] | None = key(None, SIZES, "training images of each domain that are used")
    validation: float = key(0.0, BELOW_ONE, "share of each training set held out for validation")
    augment: str = key("none", help="random changes of training images: standard, or your own")

    @field_validator("unseen")
    @classmethod
    def _one_spelling(cls, names: list[str]) -> list[str]:
        return sorted({normalize("NFC", name) for name in names})

    def names(self) -> tuple[str, ...]:
        """The domains, in order, where they are known without loading the data."""
        return ()

    def at_hand(self, folder: Path) -> Mapping[str, bool]:
        """Which parts of it are in the folder `paths.data`, without reading them; {}: not known."""
        return {}


Targets = Literal["classes", "numbers"]
Better = Literal["smaller", "larger"]  # which values of a quantity are the better ones
FROM_PYTHON = "from_python"  # the option of each group that stands for an object


@dataclass(frozen=True)
class Metric:
    """A number that is measured of every domain and split; see `metric`."""

    name: str
    unit: str
    better: Better
    decimals: int
    of: Callable[[Any, Any], Any]
    targets: Targets = "classes"


@dataclass(frozen=True)
class Loss:
    """What is trained on and measured; see `loss`."""

    name: str
    unit: str
    of: Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Augmentation:
    """What chance does to training images; see `augment`."""

    name: str
    of: Callable[..., Any]
    numbers: int | None


METRICS: dict[str, Metric] = {}
LOSSES: dict[str, Loss] = {}
AUGMENTATIONS: dict[str, Augmentation] = {}

Schema = TypeVar("Schema", bound=type)
Function = TypeVar("Function", bound=Callable[[Any, Any], Any])
Changing = TypeVar("Changing", bound=Callable[..., Any])


class Registry(Mapping[str, "type[Any]"]):
    """The options of one group, {name: class}; those with an `order` first, then by name.

    Args:
        group: "method", "data", "backbone".
        base: what every option of the group has.
        needs: the method that a class must have.
        flags: what the decorator may say, with the defaults.
    """

    def __init__(self, group: str, base: type[Settings], needs: str, **flags: Any) -> None:
        self.group, self.base, self._needs = group, base, needs
        self._defaults = {"order": None, **flags}
        self._options: dict[str, type[Settings]] = {}
        self._flags: dict[str, Mapping[str, Any]] = {}

    def register(self, name: str, **flags: Any) -> Callable[[Schema], Schema]:
        """The decorator. Raises UserError for a name that is taken or a class that lacks what is
        needed."""

        def enter(schema: Schema) -> Schema:
            what = checked(self.group, name, schema, self._options.get(name))
            if not issubclass(schema, Settings) or dataclasses.is_dataclass(schema):
                raise UserError(
                    f"{what}: the class must derive from robustmd.Settings, and be no dataclass"
                )
            if not callable(getattr(schema, self._needs, None)):
                raise UserError(f"{what}: the class lacks the method {self._needs}")
            keys: Mapping[str, Any] = schema.__pydantic_fields__
            bases: tuple[type[Settings], ...] = (schema,)
            if not issubclass(schema, self.base):
                bases = (schema, self.base)
                for taken in keys.keys() & self.base.model_fields.keys():
                    raise UserError(f"{what}: every {self.group} has the key {taken}; rename yours")
            for own, item in keys.items():
                if not _can_be_written(item.annotation):
                    raise UserError(f"{what}: the key {own} must be {WRITTEN}")
            option = create_model(
                schema.__name__,
                __base__=bases,
                __module__=schema.__module__,
                __doc__=schema.__doc__,
                name=(str, name),
            )
            option.__qualname__ = schema.__qualname__
            self._options[name], self._flags[name] = option, flags
            return option  # type: ignore[return-value]

        return enter

    def flag(self, name: str, flag: str) -> Any:
        """What the decorator said; of a name that is not registered, the default."""
        return self._flags.get(name, {}).get(flag, self._defaults[flag])

    def rank(self, name: str) -> tuple[float, str]:
        """Where an option stands among the others, in lists and tables."""
        order = self.flag(name, "order")
        return (float("inf") if order is None else order), name

    @property
    def offered(self) -> list[str]:
        """Those that a user may name; FROM_PYTHON is `robustmd.train`'s to name."""
        return [name for name in self if name != FROM_PYTHON]

    def __getitem__(self, name: str) -> type[Any]:
        return self._options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._options, key=self.rank))

    def __len__(self) -> int:
        return len(self._options)


WRITTEN = "a number, a truth value, text, a Literal of them, or a list or dict of such"


def _can_be_written(kind: Any) -> bool:
    """Whether a key's type has values that a command line and a YAML can hold."""
    if get_origin(kind) is Literal:
        return True
    if inner := get_args(kind):
        return all(map(_can_be_written, inner))
    is_group = isinstance(kind, type) and issubclass(kind, Settings)
    return is_group or kind in (int, float, str, bool, list, dict, NoneType, Any)


def checked(group: str, name: str, one: Any, there: Any) -> str:
    """How an error about a registration begins. Raises UserError for a name that cannot be."""
    what = f"@robustmd.{group}({name!r}) on {one.__module__}.{one.__qualname__}"
    if not name.isidentifier():
        raise UserError(f"{what}: a name is letters, digits and underscores")
    if there is not None:
        raise UserError(f"{what}: {there.__module__}.{there.__qualname__} has that name")
    return what


METHODS = Registry(
    "method", Method, "build", learns=True, averages=False, fair=True, baseline=None, look=None
)
BACKBONES = Registry("backbone", Backbone, "build", head=None, smallest=1)
DATA = Registry("data", Data, "load", page="data")


def _entering(group: str, known: dict[str, Any], make: Callable[[Any], Any]) -> Any:
    """The decorator that registers what `make` makes of a function."""

    def enter(of: Any) -> Any:
        made = make(of)
        there = known.get(made.name)
        checked(group, made.name, of, there and there.of)
        known[made.name] = made
        return of

    return enter


def modules_registered() -> frozenset[str]:
    """The modules outside this package that registered something."""
    groups: list[Mapping[str, Any]] = [METHODS, BACKBONES, DATA, METRICS, LOSSES, AUGMENTATIONS]
    made = (one for group in groups for one in group.values())
    names = {(one if isinstance(one, type) else one.of).__module__ for one in made}
    return frozenset(name for name in names if name.partition(".")[0] != "robustmd")


def method(
    name: str,
    *,
    learns: bool = True,
    averages: bool = False,
    fair: bool = True,
    baseline: float | None = None,
    look: int | None = None,
    order: float | None = None,
) -> Callable[[Schema], Schema]:
    """Register `method=<name>`: a `Settings` class with `build(self, facts) -> Adversary`.

    `facts` is a `MethodFacts`. A ValueError that `build` raises becomes one line.

    Args:
        name: an identifier that no other method has.
        learns: whether the weights p are learned; else they are fixed by the user.
        averages: whether the method returns W̄ = (1/T) Σ_t W_t; it is measured beside W_T, and the
            adversary then has `average`, p̄ [K], as `robustmd.adversary.Averaged` has it.
        fair: whether the fair protocol compares it.
        baseline: its turn among the methods that a report compares the others with: the first that
            was run is taken; with a key `prior`, where that is null. None: it is not one of them.
        look: number of its colour, dashes and marker in figures, see report/figures.py; None: free.
        order: its place in tables; None: after those that have one, by name.
    """
    return METHODS.register(
        name, learns=learns, averages=averages, fair=fair, baseline=baseline, look=look, order=order
    )


def baselines() -> list[str]:
    """The methods that a report compares the others with, in the order of their turns."""
    turns = {name: METHODS.flag(name, "baseline") for name in METHODS}
    return sorted((name for name in turns if turns[name] is not None), key=turns.__getitem__)


def backbone(
    name: str, *, head: str | None = None, smallest: int = 1, order: float | None = None
) -> Callable[[Schema], Schema]:
    """Register `backbone=<name>`: a `Settings` class with `build(self, facts) -> nn.Module`.

    `facts` is a `BackboneFacts`. The module takes images, float [n, 3, H, W], whose pixels are
    (u − 0.5)/0.25 with u = pixel/255, and gives logits [n, C]. Every backbone also has the keys
    `backbone.freeze`, `backbone.freeze_bn` and `backbone.dropout` (docs/backbones.md).

    Args:
        name: an identifier that no other backbone has.
        head: the last layers by their module's name in the model, which weights from a file leave
            alone and which learn where the features are frozen; None: the one layer whose size is
            the number of classes.
        smallest: pixels of the smallest image side it can take, >= 1.
        order: its place in lists; None: after those that have one, by name.
    """
    return BACKBONES.register(name, head=head, smallest=smallest, order=order)


def data(
    name: str, *, page: str = "data", order: float | None = None
) -> Callable[[Schema], Schema]:
    """Register `data=<name>`: a `Settings` class with `load(self) -> DomainSet`.

    `load(self, facts)` gets a `DataFacts`. Every data set also has the keys `data.unseen`, domains
    that are measured and not trained on, `data.sizes`, how many training examples of each domain
    there are to be, `data.validation`, the share of each training set that is held out, and
    `data.augment`.

    Args:
        name: an identifier that no other data set has.
        page: of one built in, its page in docs/.
        order: its place in lists; None: after those that have one, by name.
    """
    return DATA.register(name, page=page, order=order)


def metric(
    name: str,
    *,
    unit: str = "",
    better: Better = "larger",
    decimals: int = 3,
    targets: Targets = "classes",
) -> Callable[[Function], Function]:
    """Register a metric, which `evaluation.metrics=[<name>]` measures: a function of the logits
    float [n, C] (−inf for the classes that the domain does not have) and the labels int64 [n] of
    one domain's split, to a number or a 0-d tensor.

    Args:
        name: an identifier that no other metric has.
        unit: as tables show it: "%", "nats", "".
        better: whether "larger" or "smaller" values are better.
        decimals: how many tables show, >= 0.
        targets: whether it is of "classes", or of "numbers": outputs and labels float [n, C].

    Raises:
        UserError: the name is no identifier, or taken.
    """

    if name in ("examples", "constant"):
        raise UserError(f"@robustmd.metric({name!r}): summary.json has that name")
    return _entering(
        "metric", METRICS, lambda of: Metric(name, unit, better, decimals, of, targets)
    )


def loss(name: str, *, unit: str = "") -> Callable[[Function], Function]:
    """Register a loss, which `training.loss=<name>` trains on and measures: a function of the
    model's outputs [n, C] and the labels of n examples, to float [n].

    Labels are int64 [n]; float [n, C] where they are numbers that the model is to give.

    Args:
        name: an identifier that no other loss has.
        unit: as tables and figures show it: "nats", "m²", "".

    Raises:
        UserError: the name is no identifier, or taken.
    """

    return _entering("loss", LOSSES, lambda of: Loss(name, unit, of))


def augment(name: str, *, numbers: int | None = None) -> Callable[[Changing], Changing]:
    """Register `data.augment=<name>`: a function of a batch of training images, uint8 [n, 3, H, W]
    on the model's device, to images of that shape, any dtype, in 0..255; no measurement calls it.

    The batch is of all domains, after their views (crop, rotation, noise); numbers are rounded.

    Args:
        name: an identifier that no other augmentation has; not none.
        numbers: how many uniform numbers in [0, 1) each image has; the function gets them as a
            second argument, float32 [n, numbers], which depend on the seed, the iteration, the
            domain and the image's place in the batch alone. None: it has no second argument, and
            draws from torch's own generators, which are seeded for each batch; then no iteration is
            captured in a CUDA graph.

    Raises:
        UserError: the name is no identifier, or taken.
    """

    if name == "none":
        raise UserError("@robustmd.augment('none'): none means that images are left as they are")
    return _entering("augment", AUGMENTATIONS, lambda of: Augmentation(name, of, numbers))
