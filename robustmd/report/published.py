"""The paper's own numbers, exactly as it prints them (Qian et al., AAAI-19, Tables 2 and 3).

How many seeds they are of is not stated there. The worst training loss is not in its tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SOURCE = "Qian et al., AAAI-19"


@dataclass(frozen=True)
class PublishedRow:
    """One row: `by_domain[name]` is (loss_tr, acc_tr, acc_te), `worst` is (acc_tr, acc_te)."""

    method: str
    by_domain: dict[str, tuple[str, str, str]]
    worst: tuple[str, str]


# Of each row: loss_tr, acc_tr, acc_te by domain, then the worst acc_tr and acc_te.
_PRINTED = {
    ("digits", ("mnist", "svhn")): {
        "Individual MNIST": "0.001 100.00 98.81 4.01 30.80 29.58 30.80 29.58",
        "Individual SVHN": "1.91 66.66 68.25 0.10 97.11 91.84 66.66 68.25",
        "Mixture Even": "0.001 100.00 98.74 0.14 96.20 91.33 96.20 91.33",
        "Mixture Opt": "0.03 99.03 98.13 0.11 97.05 92.14 97.05 92.14",
    },
    ("pets", ("imagenet", "vgg")): {
        "Individual ImageNet": "0.07 98.95 89.92 0.85 74.56 80.44 74.56 80.44",
        "Individual VGG": "0.90 75.47 77.92 0.02 100.00 86.85 75.47 77.92",
        "Mixture Even": "0.17 95.56 88.50 0.05 99.58 89.85 95.56 88.50",
        "Mixture Oracle": "0.15 96.04 88.92 0.06 99.41 89.99 96.04 88.92",
        "Mixture Opt": "0.12 97.36 89.42 0.11 97.72 89.35 97.36 89.35",
    },
}


def _row(method: str, text: str, domains: Sequence[str]) -> PublishedRow:
    *by_domain, acc_tr, acc_te = text.split()
    threes = zip(by_domain[::3], by_domain[1::3], by_domain[2::3], strict=True)
    return PublishedRow(method, dict(zip(domains, threes, strict=True)), (acc_tr, acc_te))


PUBLISHED = {
    data: tuple(_row(method, text, domains) for method, text in rows.items())
    for (data, domains), rows in _PRINTED.items()
}


def published_rows(data: str, domains: Sequence[str]) -> tuple[PublishedRow, ...]:
    """The paper's rows for a data set over exactly these domains, in whatever order; () if none."""
    rows = PUBLISHED.get(data, ())
    wanted = {domain.lower() for domain in domains}
    return rows if rows and wanted == set(rows[0].by_domain) else ()
