"""data=digits_mini and digits_typed: what comes with the package, and what is drawn."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from robustmd.domains import digits_mini
from robustmd.domains.digits_mini import DigitsMini, DigitsTyped, house_number
from robustmd.registry import DataFacts

PRINTED, TYPED = DigitsMini.style, DigitsTyped.style


@pytest.fixture(scope="module")
def data(prepared_cache):
    return DigitsMini().load(DataFacts(lambda _: prepared_cache, lambda line: None))


def test_two_domains_of_the_stated_sizes(data):
    assert (data.name, data.names) == ("digits_mini", ("handwritten", "printed"))
    assert [(len(d.train), len(d.test)) for d in data] == [(1400, 397), (6000, 1000)]
    assert np.bincount(data["printed"].train.targets).tolist() == [600] * 10


def test_every_handwritten_digit_is_used_once(data):
    with np.load(digits_mini.UCI_FILE, allow_pickle=False) as file:
        original = {
            (digits_mini._enlarged(image).tobytes(), int(label))
            for image, label in zip(file["images"], file["labels"], strict=True)
        }
    splits = (data["handwritten"].train, data["handwritten"].test)
    found = [
        {(image.tobytes(), int(label)) for image, label in zip(e.images, e.targets, strict=True)}
        for e in splits
    ]
    assert found[0].isdisjoint(found[1])
    assert found[0] | found[1] == original
    assert len(original) == 1797


def test_data_sets_import_nothing_heavy():
    """Only what is used is loaded: no torch, torchvision, scipy or matplotlib on import."""
    program = (
        "import sys, robustmd.domains, robustmd.config.loading; "
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\b(torch|torchvision|scipy|matplotlib|pandas)\b", found)


def test_typed_ink_is_the_lighter_one_and_printed_ink_either():
    def apart(style):
        rng = np.random.default_rng(0)
        pairs = np.array([digits_mini._colours(rng, style) for _ in range(200)]).mean(axis=2)
        return pairs[:, 1] - pairs[:, 0]

    typed, printed = apart(TYPED), apart(PRINTED)
    assert typed.min() >= 50
    assert printed.min() < -50 < 50 < printed.max()


def test_a_picture_follows_its_style():
    """Without neighbours, turns and noise two digits of one seed differ by the digit alone."""
    plain = replace(TYPED, neighbours=0.0, shift=0.0, turn=0.0, noise=(0.0, 0.0))
    one, eight = (house_number(d, np.random.default_rng(5), plain).astype(int) for d in (1, 8))
    noisy = house_number(1, np.random.default_rng(5), replace(plain, noise=(20.0, 20.0)))
    assert np.array_equal(one[:3], eight[:3])  # background
    assert not np.array_equal(one, eight)
    assert 15 < (noisy - one)[(noisy > 0) & (noisy < 255)].std() < 25
