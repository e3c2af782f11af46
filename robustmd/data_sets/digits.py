"""`data=digits`: MNIST against SVHN, the paper's second experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from robustmd.config.ranges import one_of
from robustmd.errors import UserError
from robustmd.registry import DataFacts, Settings, data, key

if TYPE_CHECKING:
    from robustmd.domains.domain import DomainSet


@dataclass
class Svhn:
    """Whether SVHN's `extra` part is trained on as well."""

    extra: bool = False


@data("digits", order=1)
class Digits(Settings):
    """`verify=false` takes files that are not the official bytes."""

    svhn: Svhn = field(default_factory=Svhn)
    verify: bool = True

    def names(self) -> tuple[str, ...]:
        return ("mnist", "svhn")

    def load(self, facts: DataFacts) -> DomainSet:
        from robustmd.domains import digits  # noqa: PLC0415

        return digits.load(
            facts.folder("data"),
            facts.folder("cache"),
            extra=self.svhn.extra,
            verify=self.verify,
            say=facts.say,
        )


@dataclass
class OneOfDigits(Settings):
    """What data sets that are made of one domain of digits have in common."""

    domain: str = key("mnist", one_of("mnist", "svhn", "handwritten", "printed"))
    svhn: Svhn = field(default_factory=Svhn)
    verify: bool = True

    def source(self, facts: DataFacts) -> DomainSet:
        """The data set that has `domain`, or of it that domain alone."""
        from robustmd.domains import digits, digits_mini  # noqa: PLC0415

        if self.svhn.extra and self.domain != "svhn":
            raise UserError(
                f"data.svhn.extra=true: only data.domain=svhn has it, not {self.domain}"
            )
        if self.domain in ("handwritten", "printed"):
            return digits_mini.load(facts.folder("cache"), say=facts.say)
        return digits.load(
            facts.folder("data"),
            facts.folder("cache"),
            names=[self.domain],
            extra=self.svhn.extra,
            verify=self.verify,
            say=facts.say,
        )
