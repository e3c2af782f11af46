"""data.labels=per_domain: as if every domain had a head with its own classes' rows only."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import summary, synthetic_domains
from torch import nn
from torch.nn import functional

from robustmd.config.loading import with_own_labels
from robustmd.domains.domain import DomainSet
from robustmd.training.loop import domain_losses
from robustmd.training.measurement import masked, measure
from robustmd.training.pixels import normalised
from robustmd.training.pool import resident_splits

CPU = torch.device("cpu")


@pytest.fixture
def partly_shared() -> DomainSet:
    """Classes 0, 1, 2 in "a"; 1 and 3 in "b"."""
    a, b = synthetic_domains()
    bs = [replace(e, labels=np.where(e.labels > 0, 2 * e.labels - 1, 1)) for e in (b.train, b.test)]
    found = DomainSet("folder", (a, replace(b, train=bs[0], test=bs[1])), tuple("wxyz"), "0" * 64)
    return with_own_labels(found, lambda _: None)


@st.composite
def batches(draw):
    """(logits, labels, absent) where no label's class is absent from its domain."""
    domains, share, classes = draw(st.integers(1, 4)), draw(st.integers(1, 5)), 6
    random = np.random.default_rng(draw(st.integers(0, 999)))
    absent = random.random((domains, classes)) < draw(st.sampled_from([0.0, 0.4, 0.9]))
    absent[np.arange(domains), random.integers(classes, size=domains)] = False
    labels = [random.choice(np.flatnonzero(~row), size=share) for row in absent]
    logits = torch.from_numpy(random.normal(0, 5, (domains * share, classes)))
    return logits, torch.from_numpy(np.concatenate(labels)), torch.from_numpy(absent)


@given(batches())
def test_losses_and_gradients_are_those_of_heads_with_the_domains_own_rows(batch) -> None:
    features, labels, absent = batch
    domains, share = len(absent), len(labels) // len(absent)
    head = nn.Linear(6, 6).double()
    losses = domain_losses(head(features).double(), labels, domains, absent)
    weights = torch.arange(1.0, domains + 1)
    ours = torch.autograd.grad(weights @ losses.float(), list(head.parameters()))
    expected = []
    for k in range(domains):
        own = torch.nonzero(~absent[k]).squeeze(1)
        part = slice(k * share, (k + 1) * share)
        logits = functional.linear(features[part], head.weight[own], head.bias[own])
        place = torch.searchsorted(own, labels[part])
        expected.append(functional.cross_entropy(logits.float(), place))
    torch.testing.assert_close(losses, torch.stack(expected))
    theirs = torch.autograd.grad(weights @ torch.stack(expected), list(head.parameters()))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    nobody = absent.all(0)
    assert (ours[0][nobody] == 0).all()


def test_nothing_absent_is_exactly_as_shared() -> None:
    torch.manual_seed(0)
    logits, labels = torch.randn(12, 5), torch.arange(12) % 5
    shared = domain_losses(logits, labels, 3)
    assert domain_losses(logits, labels, 3, torch.zeros(3, 5, dtype=torch.bool)).equal(shared)
    assert masked(logits, None) is logits


def test_a_domain_is_measured_among_its_own_classes(partly_shared: DomainSet) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4))
    found = measure(model, resident_splits(partly_shared, CPU)["test"])["b"]
    test = partly_shared["b"].test
    with torch.no_grad():
        logits = model(normalised(torch.from_numpy(test.images)))[:, [1, 3]]
    place = torch.from_numpy((test.targets == 3).astype(np.int64))
    assert found.loss == pytest.approx(functional.cross_entropy(logits, place).item(), rel=1e-5)
    assert found.accuracy == pytest.approx(100 * (logits.argmax(1) == place).float().mean().item())


def test_the_notes_say_what_each_domain_lacks(partly_shared: DomainSet) -> None:
    a, b = partly_shared.notes
    assert "domain a" in a
    assert "3 of 4 classes, without z" in a
    assert "domain b" in b
    assert "2 of 4 classes, without w, y" in b
    lines: list[str] = []
    all_there = with_own_labels(synthetic_domains(), lines.append)
    assert lines == list(all_there.notes)
    assert "changes nothing" in lines[0]


@pytest.mark.parametrize("method", ["opt", "oracle"])
def test_a_run_trains_and_measures_with_masks_and_keeps_raw_logits(
    partly_shared: DomainSet, train, method: str
) -> None:
    extra = ["method.every=4"] if method == "oracle" else []
    outcome = train(f"method={method}", *extra, data=partly_shared)
    found = summary(outcome.directory)
    assert [note for note in found["notes"] if "per_domain" in note] == list(partly_shared.notes)
    with np.load(outcome.directory / "predictions.npz", allow_pickle=False) as saved:
        logits = torch.from_numpy(saved["test/b/logits"].astype(np.float32))
        labels = torch.from_numpy(saved["test/b/label"])
    assert torch.isfinite(logits).all()
    raw, own = (
        functional.cross_entropy(x, y)
        for x, y in (
            (logits, labels),
            (logits[:, [1, 3]], (labels == 3).long()),
        )
    )
    recorded = found["final"]["test"]["b"]["loss"]
    assert recorded == pytest.approx(own.item(), rel=1e-2)
    assert recorded < 0.8 * raw.item()
