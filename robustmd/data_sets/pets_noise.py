"""`data=pets_noise`: K copies of one domain of pets, with N(0, σ_k²) on the pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustmd.config.ranges import SIGMAS, one_of
from robustmd.data_sets.pets import Pets
from robustmd.registry import DataFacts, data, key

if TYPE_CHECKING:
    from robustmd.domains.domain import DomainSet


@data("pets_noise", order=5)
class PetsNoise(Pets):
    """The keys of pets, and one domain for each σ, of pixels in 0..255."""

    domain: str = key("imagenet", one_of("imagenet", "vgg"))
    sigmas: list[float] = key([0.0, 4.0, 8.0, 12.0], SIGMAS)

    def names(self) -> tuple[str, ...]:
        from robustmd.domains.noise_and_rotation import noisy_name  # noqa: PLC0415

        return tuple(map(noisy_name, self.sigmas))

    def load(self, facts: DataFacts) -> DomainSet:
        from robustmd.domains.noise_and_rotation import noise_copies  # noqa: PLC0415

        return noise_copies(self.of([self.domain], facts), self.domain, self.sigmas, self.name)
