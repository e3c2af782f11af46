"""`data=from_python`: domains that were made in Python and given to `robustmd.train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from robustmd.errors import UserError
from robustmd.registry import Data, DataFacts, data, key

if TYPE_CHECKING:
    from robustmd.domains.domain_set import DomainSet


@data("from_python")
class FromPython(Data):
    """The domains of `robustmd.train(domains=…)`: `given` to one run's settings, no setting."""

    fingerprint: str = key("", help="of the domains")
    given: Any = Field(None, exclude=True)

    def load(self, facts: DataFacts) -> DomainSet:
        if self.given is None:
            raise UserError(
                "data=from_python: its domains were made in Python; give them to "
                "robustmd.train(…, domains=DOMAINS) there"
            )
        domains: DomainSet = self.given
        for note in domains.notes:
            facts.say(note)
        return domains
