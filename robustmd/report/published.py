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


def _digits(method: str, mnist: str, svhn: str, worst: str) -> PublishedRow:
    return _row(method, {"mnist": mnist, "svhn": svhn}, worst)


def _pets(method: str, imagenet: str, vgg: str, worst: str) -> PublishedRow:
    return _row(method, {"imagenet": imagenet, "vgg": vgg}, worst)


def _row(method: str, by_domain: dict[str, str], worst: str) -> PublishedRow:
    loss_and_accuracies = {name: _three(text) for name, text in by_domain.items()}
    acc_tr, acc_te = worst.split()
    return PublishedRow(method, loss_and_accuracies, (acc_tr, acc_te))


def _three(text: str) -> tuple[str, str, str]:
    loss_tr, acc_tr, acc_te = text.split()
    return loss_tr, acc_tr, acc_te


PUBLISHED: dict[str, tuple[PublishedRow, ...]] = {
    "digits": (
        _digits("Individual MNIST", "0.001 100.00 98.81", "4.01 30.80 29.58", "30.80 29.58"),
        _digits("Individual SVHN", "1.91 66.66 68.25", "0.10 97.11 91.84", "66.66 68.25"),
        _digits("Mixture Even", "0.001 100.00 98.74", "0.14 96.20 91.33", "96.20 91.33"),
        _digits("Mixture Opt", "0.03 99.03 98.13", "0.11 97.05 92.14", "97.05 92.14"),
    ),
    "pets": (
        _pets("Individual ImageNet", "0.07 98.95 89.92", "0.85 74.56 80.44", "74.56 80.44"),
        _pets("Individual VGG", "0.90 75.47 77.92", "0.02 100.00 86.85", "75.47 77.92"),
        _pets("Mixture Even", "0.17 95.56 88.50", "0.05 99.58 89.85", "95.56 88.50"),
        _pets("Mixture Oracle", "0.15 96.04 88.92", "0.06 99.41 89.99", "96.04 88.92"),
        _pets("Mixture Opt", "0.12 97.36 89.42", "0.11 97.72 89.35", "97.36 89.35"),
    ),
}


def published_rows(data: str, domains: Sequence[str]) -> tuple[PublishedRow, ...]:
    """The paper's rows for a data set over exactly these domains, in whatever order; () if none."""
    rows = PUBLISHED.get(data, ())
    wanted = {domain.lower() for domain in domains}
    return rows if rows and wanted == set(rows[0].by_domain) else ()
