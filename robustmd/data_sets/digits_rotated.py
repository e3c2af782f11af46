"""`data=digits_rotated`: one domain of digits dealt out to angles × σ, K of them, K ≥ 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustmd.config.ranges import ANGLES, SEED, SOME_SIGMAS
from robustmd.data_sets.digits import OneOfDigits
from robustmd.errors import UserError
from robustmd.registry import DataFacts, data, key

if TYPE_CHECKING:
    from robustmd.domains.domain import DomainSet


@data("digits_rotated", order=3)
class DigitsRotated(OneOfDigits):
    """Angles in degrees, σ of pixels in 0..255; `split_seed` deals the images out."""

    angles: list[float] = key([0.0, 15.0, 30.0, 45.0, 60.0, 75.0], ANGLES)
    sigmas: list[float] = key([0.0], SOME_SIGMAS)
    split_seed: int = key(0, SEED)

    def check(self) -> None:
        if len(self.angles) * len(self.sigmas) < 2:
            raise UserError(
                f"data.angles={self.angles}: with data.sigmas={self.sigmas} they make one domain; "
                "a mixture needs two, as data.angles=[0,15]"
            )

    def load(self, facts: DataFacts) -> DomainSet:
        from robustmd.domains.noise_and_rotation import rotated_grid  # noqa: PLC0415

        base = self.source(facts)
        return rotated_grid(base, self.domain, self.angles, self.sigmas, self.split_seed, self.name)
