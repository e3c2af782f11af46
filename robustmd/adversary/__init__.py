"""The adversary: losses of K domains in, a distribution over the domains out.

    p_{t+1} = rule(p_t, f̂ᵗ)        f̂ᵗ: the K domains' losses at W_t, in nats

One file per rule; nothing here knows of images, models or files. The names are loaded on first use,
so that the schedules, which are plain arithmetic, can be had without importing torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robustmd.adversary.agnostic import AgnosticAscent as AgnosticAscent
    from robustmd.adversary.ascent import ProjectedAscent as ProjectedAscent
    from robustmd.adversary.base import Adversary as Adversary
    from robustmd.adversary.base import Play as Play
    from robustmd.adversary.best_response import BestResponse as BestResponse
    from robustmd.adversary.cvar import CVaR as CVaR
    from robustmd.adversary.excess import ExcessAscent as ExcessAscent
    from robustmd.adversary.fixed import Fixed as Fixed
    from robustmd.adversary.group_dro import GroupDRO as GroupDRO
    from robustmd.adversary.interior import lam_keeping_all_in_play as lam_keeping_all_in_play
    from robustmd.adversary.mirror import MirrorAscent as MirrorAscent
    from robustmd.adversary.multiplicative import MultiplicativeWeights as MultiplicativeWeights
    from robustmd.adversary.optimistic import OptimisticAscent as OptimisticAscent
    from robustmd.adversary.oracle import OracleRounds as OracleRounds
    from robustmd.adversary.regret import RegretMeter as RegretMeter
    from robustmd.adversary.regularizers import KL as KL
    from robustmd.adversary.regularizers import L2 as L2
    from robustmd.adversary.regularizers import NoRegularizer as NoRegularizer
    from robustmd.adversary.regularizers import Regularizer as Regularizer
    from robustmd.adversary.schedules import kl_optimal_c as kl_optimal_c
    from robustmd.adversary.schedules import kl_regret_bound as kl_regret_bound
    from robustmd.adversary.schedules import optimal_c as optimal_c
    from robustmd.adversary.schedules import regret_bound as regret_bound
    from robustmd.adversary.simplex import effective_number as effective_number
    from robustmd.adversary.simplex import project_simplex as project_simplex
    from robustmd.adversary.simplex import uniform as uniform
    from robustmd.adversary.tilted import Tilted as Tilted
    from robustmd.adversary.topk import TopK as TopK
    from robustmd.adversary.transport import EntropicOT as EntropicOT
    from robustmd.adversary.variance import VarianceRisk as VarianceRisk

_HOME = {
    "Adversary": "base",
    "AgnosticAscent": "agnostic",
    "BestResponse": "best_response",
    "CVaR": "cvar",
    "EntropicOT": "transport",
    "ExcessAscent": "excess",
    "Fixed": "fixed",
    "GroupDRO": "group_dro",
    "KL": "regularizers",
    "L2": "regularizers",
    "MirrorAscent": "mirror",
    "MultiplicativeWeights": "multiplicative",
    "NoRegularizer": "regularizers",
    "OptimisticAscent": "optimistic",
    "OracleRounds": "oracle",
    "Play": "base",
    "ProjectedAscent": "ascent",
    "RegretMeter": "regret",
    "Regularizer": "regularizers",
    "Tilted": "tilted",
    "TopK": "topk",
    "VarianceRisk": "variance",
    "effective_number": "simplex",
    "kl_optimal_c": "schedules",
    "kl_regret_bound": "schedules",
    "lam_keeping_all_in_play": "interior",
    "optimal_c": "schedules",
    "project_simplex": "simplex",
    "regret_bound": "schedules",
    "uniform": "simplex",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
