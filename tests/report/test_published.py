"""The paper's numbers, and where they stand beneath ours."""

import pytest

from robustmd.report.published import PUBLISHED, published_rows


def test_rows_come_for_the_papers_domains_only():
    assert len(published_rows("digits", ("mnist", "svhn"))) == 4
    assert len(published_rows("digits", ("SVHN", "MNIST"))) == 4
    assert len(published_rows("pets", ("imagenet", "vgg"))) == 5
    assert published_rows("digits", ("mnist",)) == ()
    assert published_rows("digits_mini", ("mnist", "svhn")) == ()


@pytest.mark.parametrize("row", [row for rows in PUBLISHED.values() for row in rows])
def test_the_printed_worst_accuracies_are_the_smallest_printed_ones(row):
    for place, printed in enumerate(row.worst, start=1):
        assert float(printed) == min(float(cells[place]) for cells in row.by_domain.values())
