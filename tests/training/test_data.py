"""Batches and what a measurement sees: labels stay with their images, whatever came before."""

import itertools
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import many, rows, summary, synthetic_domains
from torch import nn
from torch.nn import functional

from robustmd.domains import DomainSet
from robustmd.losses import cross_entropy
from robustmd.registry import AUGMENTATIONS, Augmentation
from robustmd.training.data import BLOCK, Batches, Images, masked, normalised

CPU = torch.device("cpu")


def batches_of(domains: DomainSet, drawn: int, size: int, seed: int = 0, **more: Any) -> Batches:
    return Batches(Images(domains, CPU), domains.names, drawn, size, seed, **more)


def sized(**sizes: int) -> DomainSet:
    """Training sets of that many features, each its own number."""
    return DomainSet.from_tensors(
        {
            name: (np.arange(n, dtype=np.float32)[:, None], np.arange(n) % 2) * 2
            for name, n in sizes.items()
        }
    )


def test_labels_stay_with_their_images_and_domains() -> None:
    domains = synthetic_domains()
    batches = batches_of(domains, 2, 20)
    for iteration in (0, 1, BLOCK - 1, BLOCK, 7 * BLOCK + 3):
        batch = batches(iteration)
        assert batch.images.shape == (20, 3, 32, 32)
        assert batch.images.is_contiguous(memory_format=torch.channels_last)
        assert batch.whose.tolist() == [0] * 10 + [1] * 10
        brightness = (batch.images.mean((1, 2, 3)) + 2) * 63.75
        assert torch.equal((brightness / 60 - 1).round().long(), batch.labels)  # as they are made


def test_a_measurement_sees_every_example_in_order() -> None:
    images = Images(sized(a=50, b=9), CPU)
    for size in (1, 7, 100):
        chunks = [*images.chunks(images.parts["test"]["a"], size)]
        assert torch.cat([x for x, _ in chunks]).flatten().tolist() == list(range(50))
        assert torch.cat([y for _, y in chunks]).tolist() == [n % 2 for n in range(50)]
    some = [*images.chunks(images.parts["train"]["b"], 2, torch.tensor([8, 3, 4]))]
    assert torch.cat([x for x, _ in some]).flatten().tolist() == [8, 3, 4]


def test_domains_are_drawn_uniformly_without_replacement() -> None:
    batches = batches_of(sized(**dict.fromkeys("abcdefg", 5)), 3, 6, seed=1)
    sets = [tuple(batches(t).domains.tolist()) for t in range(700)]
    assert all(list(s) == sorted(set(s)) and len(s) == 3 for s in sets)
    counts = np.array([sets.count(s) for s in itertools.combinations(range(7), 3)])
    expected = 700 / 35
    assert ((counts - expected) ** 2 / expected).sum() < 76.5  # chi-squared, 34 df, p = 4e-5


def test_a_drawn_domain_sees_what_it_would_see_if_all_were_there() -> None:
    domains = sized(a=50, b=60, c=70)
    few, every = batches_of(domains, 2, 8, 2), batches_of(domains, 3, 12, 2)
    for t in (0, 5, BLOCK + 1):
        batch, whole = few(t), every(t)
        assert whole.domains is None
        due = whole.images.view(3, 4)[batch.domains].flatten()
        assert batch.images.flatten().equal(due)
        assert batch.whose.equal(batch.domains.repeat_interleave(4))


def test_examples_do_not_depend_on_the_other_domains() -> None:
    both, alone = batches_of(sized(a=50, b=60), 2, 8), batches_of(sized(b=60, z=3), 2, 8)
    assert both(3).images[4:].equal(alone(3).images[:4])


@given(st.lists(st.integers(0, 5 * BLOCK), min_size=1, max_size=4))
def test_any_iteration_can_be_had_without_the_others(iterations: list[int]) -> None:
    domains = sized(a=50, b=60)
    wandering = batches_of(domains, 2, 8, seed=2)
    for t in iterations:
        assert wandering(t).images.equal(batches_of(domains, 2, 8, seed=2)(t).images)


def test_crops_are_uniform_over_all_places() -> None:
    images = Images(sized(a=9), CPU)
    images.variants = SimpleNamespace(margin=[3, 1])  # type: ignore[assignment]
    drawn = Batches(images, ["a"], 1, 100, 0).draw(0)["corners"]

    counts = np.bincount((drawn.reshape(-1, 2).numpy() @ [2, 1]).ravel(), minlength=8)
    expected = drawn.numel() / 2 / 8
    assert ((counts - expected) ** 2 / expected).sum() < 29.9  # chi-squared, 7 df, p = 1e-4


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(("drawn", "batch_size"), [(6, 15), (4, 9), (6, 6)])
def test_parts_of_a_batch_are_the_batch(size: int, drawn: int, batch_size: int) -> None:
    domains, own = many(6), AUGMENTATIONS["standard"]
    whole = batches_of(domains, drawn, batch_size, augmentation=own)(7)
    for index in range(size):
        batches = batches_of(domains, drawn, batch_size, augmentation=own, part=(index, size))
        part, every = batches(7), slice(index, None, size)
        torch.testing.assert_close(part.images, whole.images[every])
        assert part.labels.equal(whole.labels[every])
        assert part.whose.equal(whole.whose[every])


# --- images that stay on the host ----------------------------------------------------------------


def test_images_on_the_host_are_read_ahead_and_give_the_same_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A read and a step of 20 ms each take about 20 ms together, and not 40."""
    domains, pause, count = synthetic_domains(), 0.02, 20
    resident = batches_of(domains, 2, 20)
    on_host = Images(domains, CPU, share=0)
    monkeypatch.setattr(Images, "resident", property(lambda images: images is not on_host))
    read = Images.read

    def slow(images: Images, look: Any) -> torch.Tensor:
        time.sleep(pause)
        return read(images, look)

    batches = Batches(on_host, domains.names, 2, 20, 0)
    monkeypatch.setattr(on_host, "read", lambda look: slow(on_host, look))
    begun = time.perf_counter()
    for t in range(count):
        batch = batches(t)
        time.sleep(pause)  # the step
        assert batch.images.equal(resident(t).images)
    assert time.perf_counter() - begun < 1.6 * count * pause


# --- augmentation --------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [10, None])
def test_a_batch_is_augmented_by_numbers_of_its_own(numbers: int | None) -> None:
    seen: list[Any] = []

    def halved(images: torch.Tensor, *chance: torch.Tensor) -> torch.Tensor:
        seen.append([images.shape, *(part.shape for part in chance)])
        return images.float() / 2 + 0.25  # 0.25 or 0.75 above a whole number

    domains = synthetic_domains()
    plain = batches_of(domains, 2, 20)(3).images
    changed = batches_of(domains, 2, 20, augmentation=Augmentation("h", halved, numbers))(3).images
    before, after = ((images + 2) * 63.75 for images in (plain, changed))
    torch.testing.assert_close(after, (before / 2 + 0.25).round(), atol=1e-3, rtol=0)
    assert seen == [[(20, 3, 32, 32)] if numbers is None else [(20, 3, 32, 32), (20, 10)]]


def test_torchs_generators_are_seeded_for_a_batch_and_put_back() -> None:
    own = Augmentation("own", lambda x: x * 0 + torch.randint(99, (len(x), 1, 1, 1)), None)
    batches = batches_of(synthetic_domains(), 2, 20, augmentation=own)
    torch.manual_seed(5)
    due = torch.rand(3)
    torch.manual_seed(5)
    found = [batches(t).images for t in (1, 1, 2)]
    assert torch.equal(torch.rand(3), due)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


# --- classes that a domain does not have ---------------------------------------------------------


@st.composite
def masks(draw: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(features [n, 6], labels, absent [n, 6]) where no label's class is absent."""
    random = np.random.default_rng(draw(st.integers(0, 999)))
    count = draw(st.integers(1, 9))
    absent = random.random((count, 6)) < draw(st.sampled_from([0.0, 0.4, 0.9]))
    absent[np.arange(count), random.integers(6, size=count)] = False
    labels = [random.choice(np.flatnonzero(~row)) for row in absent]
    features = torch.from_numpy(random.normal(0, 5, (count, 6)))
    return features, torch.tensor(labels), torch.from_numpy(absent)


@given(masks())
def test_losses_and_gradients_are_those_of_heads_with_the_domains_own_rows(masks: Any) -> None:
    features, labels, absent = masks
    head = nn.Linear(6, 6).double()
    losses = cross_entropy(masked(head(features), absent), labels)
    ours = torch.autograd.grad(losses.sum(), list(head.parameters()))
    expected = []
    for x, label, out in zip(features, labels, absent, strict=True):
        own = torch.nonzero(~out).squeeze(1)
        logits = functional.linear(x, head.weight[own], head.bias[own])
        expected.append(functional.cross_entropy(logits, torch.searchsorted(own, label)))
    torch.testing.assert_close(losses, torch.stack(expected))
    theirs = torch.autograd.grad(torch.stack(expected).sum(), list(head.parameters()))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_pixels_are_scaled_and_features_are_not() -> None:
    images = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 1, 1, 3)
    assert normalised(images).flatten().tolist() == pytest.approx([-2, -1.2, 2])
    features = torch.randn(3, 5)
    assert normalised(features) is features


# --- runs on many domains ------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["even", "opt", "ot", "best_response", "cvar", "minimax"])
def test_more_domains_than_the_batch_has_examples(method: str, train: Any) -> None:
    outcome = train(f"method={method}", "training.batch_size=20", "logging.every=1", data=many())
    said = summary(outcome.directory)
    assert said["domains_per_batch"] == said["effective_batch"] == 20
    assert "each iteration draws 20 of 30 domains, with 1 of each's examples" in said["notes"]
    assert len(said["final"]["test"]) == 30
    found = rows(outcome.directory, "weights.csv")
    for t in range(12):
        losses = [row["batch_loss"] for row in found[30 * t : 30 * t + 30]]
        assert losses.count("nan") == 10


@pytest.mark.parametrize("method", ["topk", "cvar", "opt"])
def test_the_weight_in_the_batch_is_one_on_average(method: str, train: Any) -> None:
    """(K/M) Σ_{k drawn} p_k over iterations: weights.csv has the weights from before the draw."""
    outcome = train(
        *(f"method={method}", "training.domains_per_batch=5", "training.iterations=150"),
        *("evaluation.every=150", "logging.every=1", "training.learning_rate=0.001"),
        data=many(10),
    )
    found = rows(outcome.directory, "weights.csv")
    drawn = [0.0 if row["batch_loss"] == "nan" else 2 * float(row["weight"]) for row in found]
    sums = [sum(drawn[10 * t : 10 * t + 10]) for t in range(150)]
    error = np.std(sums, ddof=1) / np.sqrt(150)
    assert abs(np.mean(sums) - 1) <= 4 * error + 1e-6


def test_a_run_that_draws_domains_goes_on_as_if_nothing_had_happened(gone_on: Any) -> None:
    gone_on(after=7, data=many())
