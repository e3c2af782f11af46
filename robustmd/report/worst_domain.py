"""Which domain is the worst, and in how many runs: with many domains a number alone names none."""

from collections import Counter
from dataclasses import dataclass

from robustmd.report.aggregate import Group
from robustmd.report.names import clean


@dataclass(frozen=True)
class WorstDomain:
    """`name` has the lowest test accuracy of all domains in `runs` of `of` runs."""

    name: str
    runs: int
    of: int

    @property
    def text(self) -> str:
        """ "rotate_90_sigma_76 (2 of 3)"; the name alone where there is one run."""
        return f"{clean(self.name)} {self.count}".rstrip()

    @property
    def count(self) -> str:
        """ "(2 of 3)", "" where there is one run."""
        return "" if self.of == 1 else f"({self.runs} of {self.of})"


def worst_domain(group: Group, split: str = "test") -> WorstDomain:
    """The domain that is the worst in most of the group's runs; of equals the first seed's."""
    (name, runs), *_ = worst_counts(group, split).most_common(1)
    return WorstDomain(name, runs, len(group.selected))


def worst_counts(group: Group, split: str = "test") -> Counter[str]:
    """{domain: in how many runs it is the worst}."""
    return Counter(one.worst_domain(split) for one in group.selected)
