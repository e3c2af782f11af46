"""The methods, one file each: settings with their ranges, and how to build the rule.

Every module here is imported, so that a new file is a new method.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from robustmd.errors import UserError
from robustmd.registry import MethodFacts

if TYPE_CHECKING:
    from robustmd.adversary import Adversary

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def build_adversary(method: Any, facts: MethodFacts) -> Adversary:
    """The rule of a method's settings, checked.

    Raises:
        UserError: the rule refuses a combination of its settings, or is none.
    """
    from robustmd.adversary import Adversary  # noqa: PLC0415 - settings are checked without torch

    try:
        adversary = method.build(facts)
    except ValueError as error:
        raise UserError(f"method={method.name}: {error}") from None
    if not isinstance(adversary, Adversary):
        raise UserError(
            f"method={method.name}: build returned {type(adversary).__name__}; it must return a "
            "robustmd.adversary.Adversary"
        )
    if type(adversary).weighted_loss is not Adversary.weighted_loss:
        raise UserError(
            f"method={method.name}: {type(adversary).__name__} overrides weighted_loss, which no "
            "run calls: a method gives weights; what else is minimised is a loss of your own "
            "(@robustmd.loss)"
        )
    return adversary
