"""robustmd: one model for several domains, trained so that its worst domain does well.

Implements Qian et al., *Robust Optimization over Multiple Domains*, AAAI-19.
"""

__version__ = "0.1.0"
