"""robustmd: one model for several domains, trained so that its worst domain does well.

Implements Qian et al., *Robust Optimization over Multiple Domains*, AAAI-19.

Own methods, data sets, backbones, metrics and losses come in by the decorators here
(docs/own_code.md); `train` and `load_run` are the command's from Python (docs/python.md).
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from robustmd.notebook import train as train
    from robustmd.registry import Settings as Settings
    from robustmd.registry import augment as augment
    from robustmd.registry import backbone as backbone
    from robustmd.registry import data as data
    from robustmd.registry import key as key
    from robustmd.registry import loss as loss
    from robustmd.registry import method as method
    from robustmd.registry import metric as metric
    from robustmd.trackers.tracker import tracker as tracker
    from robustmd.trained_run import Run as Run
    from robustmd.trained_run import load_run as load_run
    from robustmd.trained_run import load_runs as load_runs

_WHERE = {
    "robustmd.notebook": "train",
    "robustmd.trained_run": "Run load_run load_runs",
    "robustmd.registry": "Settings augment backbone data key loss method metric",
    "robustmd.trackers.tracker": "tracker",
}
__all__ = [name for names in _WHERE.values() for name in names.split()]


def __getattr__(name: str) -> object:
    for module, names in _WHERE.items():  # `robustmd --help` needs none of them
        if name in names.split():
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
