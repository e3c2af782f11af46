"""`data=digits_noise`: K copies of one domain of digits, with N(0, σ_k²) on the pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustmd.config.ranges import SIGMAS
from robustmd.data_sets.digits import OneOfDigits
from robustmd.registry import DataFacts, data, key

if TYPE_CHECKING:
    from robustmd.domains.domain import DomainSet


@data("digits_noise", order=2)
class DigitsNoise(OneOfDigits):
    """One domain for each σ, of pixels in 0..255."""

    sigmas: list[float] = key([0.0, 4.0, 8.0, 12.0], SIGMAS)

    def names(self) -> tuple[str, ...]:
        from robustmd.domains.noise_and_rotation import noisy_name  # noqa: PLC0415

        return tuple(map(noisy_name, self.sigmas))

    def load(self, facts: DataFacts) -> DomainSet:
        from robustmd.domains.noise_and_rotation import noise_copies  # noqa: PLC0415

        return noise_copies(self.source(facts), self.domain, self.sigmas, self.name)
