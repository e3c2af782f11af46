"""The adversary: losses of K domains in, a distribution over the domains out.

    p_{t+1} = rule(p_t, f̂ᵗ)        f̂ᵗ: the K domains' losses at W_t, in nats

One file per rule; nothing here knows of images, models or files. The names are loaded on first use,
so that the schedules, which are plain arithmetic, can be had without importing torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robustmd.adversary.ascent import AgnosticAscent as AgnosticAscent
    from robustmd.adversary.ascent import ExcessAscent as ExcessAscent
    from robustmd.adversary.ascent import OptimisticAscent as OptimisticAscent
    from robustmd.adversary.ascent import ProjectedAscent as ProjectedAscent
    from robustmd.adversary.balancing import FAMO as FAMO
    from robustmd.adversary.balancing import DynamicWeightAverage as DynamicWeightAverage
    from robustmd.adversary.balancing import UncertaintyWeights as UncertaintyWeights
    from robustmd.adversary.base import Adversary as Adversary
    from robustmd.adversary.base import Play as Play
    from robustmd.adversary.base import domain_means as domain_means
    from robustmd.adversary.best_response import BestResponse as BestResponse
    from robustmd.adversary.group_dro import GroupDRO as GroupDRO
    from robustmd.adversary.memoryless import CVaR as CVaR
    from robustmd.adversary.memoryless import Fixed as Fixed
    from robustmd.adversary.memoryless import Tilted as Tilted
    from robustmd.adversary.memoryless import TopK as TopK
    from robustmd.adversary.memoryless import VarianceRisk as VarianceRisk
    from robustmd.adversary.mirror import MirrorAscent as MirrorAscent
    from robustmd.adversary.multiplicative import MultiplicativeWeights as MultiplicativeWeights
    from robustmd.adversary.oracle import OracleRounds as OracleRounds
    from robustmd.adversary.regret import RegretMeter as RegretMeter
    from robustmd.adversary.regularizers import KL as KL
    from robustmd.adversary.regularizers import L2 as L2
    from robustmd.adversary.regularizers import NoRegularizer as NoRegularizer
    from robustmd.adversary.regularizers import Regularizer as Regularizer
    from robustmd.adversary.regularizers import lam_keeping_all_in_play as lam_keeping_all_in_play
    from robustmd.adversary.schedules import kl_optimal_c as kl_optimal_c
    from robustmd.adversary.schedules import kl_regret_bound as kl_regret_bound
    from robustmd.adversary.schedules import optimal_c as optimal_c
    from robustmd.adversary.schedules import regret_bound as regret_bound
    from robustmd.adversary.simplex import effective_number as effective_number
    from robustmd.adversary.simplex import project_simplex as project_simplex
    from robustmd.adversary.simplex import uniform as uniform
    from robustmd.adversary.transport import EntropicOT as EntropicOT

_NAMES = {
    "ascent": "AgnosticAscent ExcessAscent OptimisticAscent ProjectedAscent",
    "balancing": "DynamicWeightAverage FAMO UncertaintyWeights",
    "base": "Adversary Play domain_means",
    "best_response": "BestResponse",
    "group_dro": "GroupDRO",
    "memoryless": "CVaR Fixed Tilted TopK VarianceRisk",
    "mirror": "MirrorAscent",
    "multiplicative": "MultiplicativeWeights",
    "oracle": "OracleRounds",
    "regret": "RegretMeter",
    "regularizers": "KL L2 NoRegularizer Regularizer lam_keeping_all_in_play",
    "schedules": "kl_optimal_c kl_regret_bound optimal_c regret_bound",
    "simplex": "effective_number project_simplex uniform",
    "transport": "EntropicOT",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
