"""robustmd: one model for several domains, trained so that its worst domain does well.

Implements Qian et al., *Robust Optimization over Multiple Domains*, AAAI-19.

Own methods, data sets, backbones, metrics and losses come in by the decorators here
(docs/own_code.md); `train` and `load_run` are the command's from Python (docs/python.md).
"""

from robustmd.on_first_use import names_of

__version__ = "0.2.0.dev0"
__getattr__, __dir__, __all__ = names_of(__name__, __file__)
