"""The factors: what is varied, one at a time, and at which levels."""

from collections.abc import Sequence
from dataclasses import dataclass

from robustmd.studies.planted.domains import Setting

BASE = Setting()


@dataclass(frozen=True)
class Factor:
    """One thing that is varied, all else as in `BASE`.

    Attributes:
        name: for the tables.
        label: what the levels are, for the figures' axis.
        levels: (value, setting), from the mildest to the hardest.
        log: whether the axis is logarithmic.
    """

    name: str
    label: str
    levels: tuple[tuple[float, Setting], ...]
    log: bool = False

    def ends(self) -> "Factor":
        """The same with its mildest and its hardest level only."""
        return Factor(self.name, self.label, (self.levels[0], self.levels[-1]), self.log)


DIFFICULTY = Factor(
    "difficulty",
    "scale of the features, easiest / hardest domain",
    tuple((ratio, Setting(scale_ratio=ratio)) for ratio in (1.0, 2.0, 4.0, 8.0)),
    log=True,
)
SIZE = Factor(
    "size",
    "training examples, largest / smallest domain",
    tuple((ratio, Setting(size_ratio=ratio)) for ratio in (1.0, 3.0, 10.0, 30.0)),
    log=True,
)
NOISE = Factor(
    "label noise",
    "flipped labels in one domain (0.05 in the others)",
    ((0.05, BASE), *((share, Setting(first_flips=share)) for share in (0.15, 0.25, 0.35, 0.45))),
)
DOMAINS = Factor(
    "domains",
    "domains K",
    tuple((float(K), Setting(num_domains=K)) for K in (2, 5, 10, 20, 50)),
    log=True,
)
OUTLIER = Factor(
    "outlier",
    "angle of one domain's rule (30° in the others)",
    ((30.0, BASE), *((angle, Setting(first_angle=angle)) for angle in (60.0, 90.0, 120.0, 150.0))),
)
FACTORS = (DIFFICULTY, SIZE, NOISE, DOMAINS, OUTLIER)


def settings_of(factors: Sequence[Factor]) -> list[Setting]:
    """Every setting once: the factors share their base."""
    return list(dict.fromkeys(setting for factor in factors for _, setting in factor.levels))
