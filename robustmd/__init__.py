"""robustmd: one model for several domains, trained so that its worst domain does well.

Implements Qian et al., *Robust Optimization over Multiple Domains*, AAAI-19.

Own methods, data sets, backbones, metrics and losses come in by the decorators here
(docs/own_code.md); `train` and `load_run` are the command's from Python (docs/python.md).
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from robustmd.notebook import Run as Run
    from robustmd.notebook import load_run as load_run
    from robustmd.notebook import load_runs as load_runs
    from robustmd.notebook import train as train
    from robustmd.registry import Settings as Settings
    from robustmd.registry import augment as augment
    from robustmd.registry import backbone as backbone
    from robustmd.registry import data as data
    from robustmd.registry import key as key
    from robustmd.registry import loss as loss
    from robustmd.registry import method as method
    from robustmd.registry import metric as metric

_PUBLIC = dict.fromkeys(
    ("Settings", "augment", "backbone", "data", "key", "loss", "method", "metric"),
    "robustmd.registry",
) | dict.fromkeys(("Run", "load_run", "load_runs", "train"), "robustmd.notebook")


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)  # `robustmd --help` needs none of it
