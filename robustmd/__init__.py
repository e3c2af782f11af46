"""robustmd: one model for several domains, trained so that its worst domain does well.

Implements Qian et al., *Robust Optimization over Multiple Domains*, AAAI-19.

Own methods, data sets, backbones, metrics and losses come in by the decorators here
(docs/own_code.md).
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from robustmd.registry import Settings as Settings
    from robustmd.registry import backbone as backbone
    from robustmd.registry import data as data
    from robustmd.registry import key as key
    from robustmd.registry import loss as loss
    from robustmd.registry import method as method
    from robustmd.registry import metric as metric

_DOOR = ("Settings", "backbone", "data", "key", "loss", "method", "metric")


def __getattr__(name: str) -> object:
    if name not in _DOOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from robustmd import registry  # noqa: PLC0415 - `robustmd --help` needs none of it

    return getattr(registry, name)
