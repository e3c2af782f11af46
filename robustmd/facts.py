"""What the code of a method, a backbone or a data set is given beside its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from robustmd.errors import Say

if TYPE_CHECKING:
    from robustmd.domains.domain_set import DomainSet


@dataclass(frozen=True)
class MethodFacts:
    """What a rule may know beside its settings.

    num_domains: K, the domains that train. iterations: T. sizes: n_k, how many images each of them
    trains on, each once however many variants of it are seen; None where that is not known.
    """

    num_domains: int
    iterations: int
    sizes: Sequence[int] | None = None


@dataclass(frozen=True)
class BackboneFacts:
    """num_classes: C, the number of logits. image_size: (H, W) in pixels of what it will see;
    (1, …) of features [n, …]."""

    num_classes: int
    image_size: tuple[int, ...]

    @classmethod
    def of(cls, domains: DomainSet) -> BackboneFacts:
        return cls(len(domains.classes), domains.image_size)


@dataclass(frozen=True)
class DataFacts:
    """Where files are and go, for a data set that asks for them.

    `folder("data")` and `folder("cache")` are `paths.data` and `paths.cache`; they raise UserError
    where there is none. `say` shows the user a line.
    """

    folder: Callable[[str], Path]
    say: Say


class FinishedRuns(Protocol):
    """The finished runs that a method may take numbers from."""

    def best_losses(self) -> tuple[list[float], str]:
        """f*_k [K] (nats) of the trained domains, from individual runs on the same bytes, and a
        note of which. Raises UserError: a domain has no such run; says what makes it."""

    def mean_weights(self, path: str | None) -> tuple[list[float], str]:
        """p̄ [K] of the runs of one configuration in the folder `path`, and a note. Raises
        UserError: there are none, or they are of other domains."""
