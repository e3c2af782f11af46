"""`data=digits`: MNIST against SVHN, the paper's second experiment, as 32×32 RGB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from robustmd.data_sets import mnist, svhn
from robustmd.domains.checksums import fingerprint
from robustmd.domains.domain import DomainSet
from robustmd.registry import DataFacts, Settings, data, key

BYTES = 257_910_900  # MNIST, and SVHN without its extra digits
CLASSES = tuple(str(digit) for digit in range(10))


@dataclass
class Svhn:
    """The keys of SVHN."""

    extra: bool = key(False, help="train on its extra part too, as in the paper: 604,388 digits")


@data("digits", order=1)
class Digits(Settings):
    """MNIST against SVHN."""

    svhn: Svhn = field(default_factory=Svhn)
    verify: bool = key(True, help="false: take files that are not the official bytes, with a note")

    def names(self) -> tuple[str, ...]:
        return ("mnist", "svhn")

    def at_hand(self, folder: Path) -> tuple[str, int, Mapping[str, bool]]:
        sources = (mnist.source(), svhn.source(self.svhn.extra, self.verify))
        there = {s.title: len(s.found(folder)) == len(s.md5s) for s in sources}
        return "; ".join(f"{s.title} {s.licence}" for s in sources), BYTES, there

    def load(self, facts: DataFacts) -> DomainSet:
        """The domains "mnist" (60,000 + 10,000) and "svhn" (73,257 + 26,032). Raises UserError."""
        return self.of(self.names(), facts)

    def of(self, domains: Sequence[str], facts: DataFacts) -> DomainSet:
        """These domains alone; the other's files are not looked at."""
        sources = [mnist.source(), svhn.source(self.svhn.extra, self.verify)]
        found, checksums, notes = [], {}, []
        for source in (source for source in sources if source.name in domains):
            domain, checksums[source.name], strangers = source.load(facts, self.verify)
            found.append(domain)
            notes += strangers
        for note in notes:
            facts.say(note)
        sha256 = fingerprint("digits", CLASSES, checksums)
        return DomainSet("digits", tuple(found), CLASSES, sha256, tuple(notes))
