"""The paper's numbers, and where they stand beneath ours."""

import pytest

from robustmd.report.published import PRINTED, published_rows


def test_rows_come_for_the_papers_domains_only_and_in_the_order_asked_for():
    assert len(published_rows("pets", ("imagenet", "vgg"))) == 5
    assert published_rows("digits", ("mnist",)) == []
    assert published_rows("digits_mini", ("mnist", "svhn")) == []
    (_, first), *others = published_rows("digits", ("SVHN", "MNIST"))
    assert len(others) == 3
    assert first[:6] == ("4.01", "30.80", "29.58", "0.001", "100.00", "98.81")


@pytest.mark.parametrize("data", PRINTED)
def test_the_printed_worst_accuracies_are_the_smallest_printed_ones(data):
    for _, (*printed, acc_tr, acc_te) in published_rows(*data):
        for place, worst in ((1, acc_tr), (2, acc_te)):
            assert float(worst) == min(map(float, printed[place::3]))
