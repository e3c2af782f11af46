"""`backbone=from_python`: a module that was made in Python and given to `robustmd.train`."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar

from robustmd.errors import UserError
from robustmd.registry import BackboneFacts, Settings, backbone, key

if TYPE_CHECKING:
    from torch import nn


@backbone("from_python")
class FromPython(Settings):
    """The module of `robustmd.train(model=…)`: `given` to one run's settings, no setting."""

    sha256: str = key("", help="of the module's layers and weights")
    given: ClassVar[Any] = None

    def build(self, facts: BackboneFacts) -> nn.Module:
        if self.given is None:
            raise UserError(
                "backbone=from_python: its module was made in Python; give it to "
                "robustmd.train(…, model=MODULE), or to load_run(path, MODULE)"
            )
        model: nn.Module = copy.deepcopy(self.given)
        return model.train()
