"""The licences that runs record for their domains, and whether their pictures may be shown."""

from robustmd.report.aggregate import Section
from robustmd.runs.run import Run

# To the letter as data sets name them; what is not here stays out of a report, such as SVHN
# ("non-commercial use only"), ImageNet (research terms) and a user's own images.
SHOWN = frozenset(
    {
        "CC BY 4.0",
        "CC BY-SA 3.0",
        "CC BY-SA 4.0",
        "the fonts' licences, which leave pictures free",
    }
)
UNKNOWN = "not recorded"


def may_be_shown(licence: str) -> bool:
    """Whether a page made for others may show examples of data under this licence."""
    return licence in SHOWN


def licences_of(section: Section) -> dict[str, str]:
    """{domain: licence}, as the section's first run that records any has it; else `UNKNOWN`."""
    found: dict[str, str] = next(filter(None, map(_recorded, section.runs)), {})
    return {name: found.get(name, UNKNOWN) for name in section.runs[0].measured}


def _recorded(run: Run) -> dict[str, str]:
    """summary.json's `licences`: a mapping by domain, or one for all of them."""
    recorded = run.summary.get("licences")
    if isinstance(recorded, str):
        return dict.fromkeys(run.measured, recorded)
    if not isinstance(recorded, dict):
        return {}
    return {name: text for name, text in recorded.items() if isinstance(text, str) and text}
