"""The paper's own numbers, exactly as it prints them (Qian et al., AAAI-19, Tables 2 and 3).

How many seeds they are of is not stated there. The worst training loss is not in its tables.
"""

from collections.abc import Sequence

SOURCE = "Qian et al., AAAI-19"
# Of each row: loss_tr, acc_tr, acc_te by domain, then the worst acc_tr and acc_te.
PRINTED = {
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


def published_rows(data: str, domains: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """(method, its numbers as printed): loss_tr, acc_tr, acc_te of each of the domains in their
    order, then the worst acc_tr and acc_te. Empty unless the paper has the data set with exactly
    these domains."""
    wanted = [domain.lower() for domain in domains]
    for (name, printed), rows in PRINTED.items():
        if name == data and sorted(printed) == sorted(wanted):
            places = [3 * printed.index(domain) for domain in wanted]
            order = [*(place + i for place in places for i in range(3)), -2, -1]
            cells = {method: text.split() for method, text in rows.items()}
            return [(method, tuple(row[i] for i in order)) for method, row in cells.items()]
    return []
