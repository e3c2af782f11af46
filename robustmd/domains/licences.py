"""The licences of the data that the package knows, and whether examples may be republished.

Not legal advice: a data set's own terms count. What is not listed here is never republished, as a
user's own images are not.
"""

from __future__ import annotations

CC_BY_4 = "CC BY 4.0"
CC_BY_SA_3 = "CC BY-SA 3.0"
CC_BY_SA_4 = "CC BY-SA 4.0"
NON_COMMERCIAL = "non-commercial use only"
FONTS = "the fonts' licences, which leave pictures free"

# Each of them asks for the source to be named, which the sheet of examples does.
_EMBEDDABLE = frozenset({CC_BY_4, CC_BY_SA_3, CC_BY_SA_4, FONTS})


def embeddable(licence: str) -> bool:
    """Whether a page made for others may show examples of data under this licence.

    licence: `Domain.licence`, to the letter. False for what is not known, so for SVHN
    (`NON_COMMERCIAL`), ImageNet (research terms) and data without a licence.
    """
    return licence in _EMBEDDABLE
