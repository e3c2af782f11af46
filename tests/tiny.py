"""What the training tests share and import by name: tiny domains, and settings from overrides."""

import numpy as np
from hydra import compose, initialize_config_module

from robustmd import settings
from robustmd.domains.domain import DomainSet
from robustmd.typed import typed


def synthetic_domains(seed: int = 0, examples: int = 60) -> DomainSet:
    """Two domains, three classes that differ in brightness; domain b is noisy, so harder."""
    random = np.random.default_rng(seed)

    def split(count: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(count) % 3
        images = (
            60.0 + 60.0 * labels[:, None, None, None] + random.normal(0, noise, (count, 32, 32, 3))
        )
        return images.clip(0, 255).astype(np.uint8), labels.astype(np.int64)

    def domain(noise: float) -> tuple[np.ndarray, ...]:
        return (*split(examples, noise), *split(examples // 2, noise))

    return DomainSet.from_tensors({"a": domain(5.0), "b": domain(90.0)}, name="digits_mini")


def composed(*overrides: str) -> settings.Config:
    """The typed config that these overrides give on the command line."""
    with initialize_config_module("robustmd.conf", version_base="1.3"):
        return typed(compose("config", overrides=list(overrides)))
