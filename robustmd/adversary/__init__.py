"""The adversary: losses of K domains in, a distribution over the domains out.

    p_{t+1} = rule(p_t, f̂ᵗ)        f̂ᵗ: the K domains' losses at W_t, in nats

One file per rule; nothing here knows of images, models or files. The schedules, which are plain
arithmetic, can be had without importing torch.
"""

from robustmd.on_first_use import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
