"""data=digits_mini and digits_typed: what comes with the package, and what is drawn."""

import hashlib
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
    assert data.name == "digits_mini"
    assert data.names == ("handwritten", "printed")
    assert data.image_size == (32, 32)
    assert [(len(d.train), len(d.test)) for d in data] == [(1400, 397), (6000, 1000)]
    assert "CC BY 4.0" in data["handwritten"].licence


def test_packaged_file_is_the_one_described():
    text = digits_mini.UCI_FILE.with_suffix(".md").read_text(encoding="utf-8")
    digest = hashlib.sha256(digits_mini.UCI_FILE.read_bytes()).hexdigest()
    assert digest in text
    assert "10.24432/C50P49" in text
    with np.load(digits_mini.UCI_FILE, allow_pickle=False) as file:
        images, labels = file["images"], file["labels"]
    assert images.shape == (1797, 8, 8)
    assert images.max() == 16
    # The counts that the set's own description gives for its test digits 0 to 9.
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_every_handwritten_digit_is_used_once(data):
    with np.load(digits_mini.UCI_FILE, allow_pickle=False) as file:
        original = {
            (digits_mini._enlarged(image)[0].tobytes(), int(label))
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


def test_printed_classes_are_equally_frequent_and_shuffled(data):
    for split, each in (("train", 600), ("test", 100)):
        labels = data["printed"].splits[split].targets
        assert np.bincount(labels).tolist() == [each] * 10
        assert np.abs(np.diff(labels)).max() > 1


@pytest.mark.parametrize(("split", "stream"), [("train", 1), ("test", 2)])
def test_printed_digits_are_drawn_alike_again(data, split, stream):
    """Whoever has the seed has the digits: the same labels, the same pixels."""
    rng = digits_mini._stream(stream)
    examples = data["printed"].splits[split]
    labels = rng.permutation(np.arange(len(examples)) % 10)
    assert np.array_equal(labels, examples.targets)
    for label, kept in zip(labels[:100], examples.images, strict=False):
        assert np.array_equal(house_number(int(label), rng, PRINTED), kept)


def test_second_start_draws_nothing(prepared_cache, data, monkeypatch):
    monkeypatch.setattr(DigitsMini, "_build", lambda self, notes: 1 / 0)
    lines = []
    again = DigitsMini().load(DataFacts(lambda _: prepared_cache, lines.append))
    assert (again.fingerprint, lines) == (data.fingerprint, [])


def test_data_sets_import_nothing_heavy():
    """Only what is used is loaded: no torch, torchvision, scipy or matplotlib on import."""
    program = (
        "import sys, robustmd.domains, robustmd.config.loading; "
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\b(torch|torchvision|scipy|matplotlib|pandas)\b", found)


def test_it_is_handwritten_against_typed_digits(tmp_path, monkeypatch):
    assert DigitsTyped.counts == (3000, 600)
    monkeypatch.setattr(DigitsTyped, "counts", (40, 20))
    small = DigitsTyped().load(DataFacts(lambda _: tmp_path, lambda line: None))
    assert (small.name, small.names) == ("digits_typed", DigitsTyped().names())
    assert small.names == ("handwritten", "typed")
    assert [(len(d.train), len(d.test)) for d in small] == [(1400, 397), (40, 20)]
    assert np.bincount(small["typed"].train.targets).tolist() == [4] * 10
    assert small.image_size == (32, 32)


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
