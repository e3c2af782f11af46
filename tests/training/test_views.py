"""From stored images to batches: labels stay with their images, noise is fresh or fixed."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tiny import synthetic_domains

from robustmd.data_sets.noise_and_rotation import noise_copies
from robustmd.domains import Domain, DomainSet, Examples, Views
from robustmd.domains.examples import VARIANTS
from robustmd.registry import AUGMENTATIONS
from robustmd.training.batches import BLOCK, BatchStream
from robustmd.training.pool import ResidentExamples, Shelf, TrainingPool, chunks, resident_splits

CPU = torch.device("cpu")
COLORS = np.array([[200, 60, 60], [60, 200, 60], [60, 60, 200], [170, 170, 40], [40, 170, 170]])
EVERYTHING = Views(tuple(VARIANTS), crop=12, sigma=20.0)


def planted(count: int, seed: int, size: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Images in their class's colour with some texture, in random order of the classes."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, len(COLORS), count)
    texture = random.integers(-30, 31, (count, size, size, 3))
    images = (COLORS[labels][:, None, None] + texture).clip(0, 255).astype(np.uint8)
    return images, labels.astype(np.int64)


def planted_domains(views: Views = EVERYTHING) -> DomainSet:
    """ "a" is turned, cropped and noisy; "b" has rows in another order than its images."""
    upright = replace(views, variants=("identity",))

    def domain(name: str, seed: int, train_views: Views) -> Domain:
        images, labels = planted(60, seed)
        order = np.random.default_rng(seed).permutation(60)
        train = Examples(images, labels, order[:40], train_views)
        return Domain(name, train, Examples(images, labels, order[40:], upright))

    domains = (domain("a", 1, views), domain("b", 2, upright))
    return DomainSet("planted", domains, tuple("rgbyc"), "0" * 64)


def nearest(images: torch.Tensor) -> np.ndarray:
    """The class whose colour is nearest to each image's mean, black corners apart."""
    x = images.permute(0, 2, 3, 1).reshape(len(images), -1, 3).numpy()
    x = (x + 2) * 63.75
    means = x.mean(1)
    means *= np.linalg.norm(COLORS, axis=1).mean() / np.linalg.norm(means, axis=1, keepdims=True)
    return np.linalg.norm(means[:, None] - COLORS[None], axis=2).argmin(1)


@pytest.mark.parametrize("validation", [0.0, 0.5])
def test_a_domains_size_counts_its_images_and_not_their_variants(train, validation: float) -> None:
    """Each has 60 images, "a" in ten variants: erm and the shares by size are even."""
    even = synthetic_domains()
    turned = replace(even["a"], train=replace(even["a"].train, views=Views(tuple(VARIANTS))))
    own = ["method=erm", "data.shares=size", f"data.validation={validation}"]
    run = train(*own, data=replace(even, domains=(turned, even["b"])))
    summary = json.loads((run.directory / "summary.json").read_text("utf-8"))
    assert summary["weights"] == {"a": 0.5, "b": 0.5}
    assert "data.shares: each iteration has 10 of a, 10 of b" in " ".join(summary["notes"])


# --- labels ---------------------------------------------------------------------------------


@pytest.mark.parametrize("validation", [0.0, 0.3])
def test_labels_survive_every_step_of_the_way(validation: float) -> None:
    domains = planted_domains().with_validation(validation, seed=3)
    splits = resident_splits(domains, CPU, seed=0)
    for examples in (e for split in splits.values() for e in split.values()):
        for images, labels in chunks(examples, 7):
            assert np.array_equal(nearest(images), labels.numpy())
    train = list(splits["train"].values())
    batches = BatchStream({d.name: d.train for d in domains}, 50, seed=0)
    for iteration in (0, 1, BLOCK - 1, BLOCK, 7 * BLOCK + 3):
        images, labels = TrainingPool(train).gather(batches.draw(iteration))
        assert images.shape == (50, 3, 12, 12)
        assert images.is_contiguous(memory_format=torch.channels_last)
        assert np.array_equal(nearest(images), labels.numpy())
        assert len(set(labels.tolist())) > 1


def test_every_position_is_its_image_in_its_variant() -> None:
    views = Views(tuple(VARIANTS))
    images, labels = planted(4, 0)
    examples = Examples(images, labels, np.array([2, 0]), views)
    resident = ResidentExamples(examples, CPU)
    found, targets = Shelf([resident]).gather(torch.arange(20))
    assert targets.tolist() == [labels[2]] * 10 + [labels[0]] * 10
    assert resident.ids.tolist() == [2] * 10 + [0] * 10
    picture = Image.fromarray(images[0])
    assert np.array_equal(found[10].numpy(), images[0])
    flipped = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    assert np.array_equal(found[11].numpy(), np.asarray(flipped))
    assert np.array_equal(found[10 + views.variants.index("rotate_90")], picture.rotate(90))


def test_a_measurement_crops_the_centre() -> None:
    images, labels = planted(3, 0)
    resident = ResidentExamples(Examples(images, labels, views=Views(crop=10)), CPU)
    found, _ = Shelf([resident]).gather(torch.arange(3))
    assert np.array_equal(found.numpy(), images[:, 3:13, 3:13])


# --- what is drawn --------------------------------------------------------------------------


def test_the_batches_of_plain_data_are_what_they_have_always_been() -> None:
    """The hash that version 0.1.0 recorded in environment.json for these sizes."""
    images, labels = np.zeros((5000, 1, 1, 3), np.uint8), np.zeros(5000, np.int64)
    plain = Examples(images, labels)
    batches = BatchStream({"a": plain, "b": plain}, 200, seed=0)
    assert batches.fingerprint() == "e1e1dcc9f259975f"
    assert batches.draw(0).corners is batches.draw(0).noise_keys is None


def test_what_views_draw_is_in_the_hash_and_leaves_the_positions() -> None:
    def stream(views: Views) -> BatchStream:
        images, labels = planted(20, 0)
        return BatchStream({"a": Examples(images, labels, views=views)}, 10, seed=0)

    views = [Views(), Views(crop=12), Views(crop=13), Views(sigma=4.0), Views(("rotate_90",))]
    streams = [stream(v) for v in views]
    assert len({s.fingerprint() for s in streams}) == 4  # one turned variant draws nothing new
    assert all(s.draw(3).positions.equal(streams[0].draw(3).positions) for s in streams)


def test_crops_are_uniform_over_all_places() -> None:
    images, labels = np.zeros((9, 6, 4, 3), np.uint8), np.zeros(9, np.int64)
    cropped, small = (
        Examples(images, labels, views=Views(crop=3)),
        Examples(images[:, :3, :3], labels),
    )
    batches = BatchStream({"a": cropped, "b": small}, 100, seed=0)
    corners = np.stack([batches.draw(t).corners.numpy() for t in range(100)])
    assert (corners[:, 1] == 0).all()
    places = corners[:, 0].reshape(-1, 2) @ [2, 1]
    counts = np.bincount(places, minlength=8)
    expected = len(places) / 8
    assert ((counts - expected) ** 2 / expected).sum() < 29.9  # chi-squared, 7 df, p = 1e-4


@settings(max_examples=20)
@given(st.lists(st.integers(0, 5 * BLOCK), min_size=1, max_size=4))
def test_any_iteration_can_be_had_without_the_others(iterations: list[int]) -> None:
    domains = planted_domains()
    train = list(resident_splits(domains, CPU)["train"].values())
    sources = {d.name: d.train for d in domains}
    wandering = BatchStream(sources, 8, seed=2)
    for t in iterations:
        fresh = BatchStream(sources, 8, seed=2)
        ours, _ = TrainingPool(train).gather(wandering.draw(t))
        theirs, _ = TrainingPool(train).gather(fresh.draw(t))
        assert ours.equal(theirs)


def test_a_domain_is_seen_the_same_whatever_the_others() -> None:
    domains = planted_domains()
    own = AUGMENTATIONS["standard"]
    sources = {d.name: d.train for d in domains}
    both = BatchStream(sources, 8, seed=2, augmentation=own).draw(7).at(1)
    reordered = BatchStream(dict(reversed(sources.items())), 8, seed=2, augmentation=own)
    other = reordered.draw(7).at(0)
    assert both.positions.equal(other.positions)
    assert both.corners.equal(other.corners)
    assert both.noise_keys.equal(other.noise_keys)
    assert both.chance.equal(other.chance)


# --- noise ----------------------------------------------------------------------------------


def noisy_copies(sigmas=(0.0, 10.0, 30.0)) -> DomainSet:
    images, labels = np.full((50, 16, 16, 3), 128, np.uint8), np.arange(50) % 5
    domains = DomainSet.from_tensors({"a": (images, labels, images[:20].copy(), labels[:20])})
    return noise_copies(domains, "a", sigmas, "digits_noise")


def test_noisy_copies_lie_in_memory_once() -> None:
    splits = resident_splits(noisy_copies().with_validation(0.2, 0), CPU)
    for names in (("train", "val"), ("test",)):
        places = {e.images.data_ptr() for name in names for e in splits[name].values()}
        assert len(places) == 1


def test_training_noise_is_fresh_at_each_draw() -> None:
    domains = noisy_copies((10.0, 30.0))
    train = list(resident_splits(domains, CPU)["train"].values())
    batches = BatchStream({d.name: d.train for d in domains}, 40, seed=0)
    draws = [batches.draw(t) for t in range(6)]
    same = [d._replace(positions=torch.zeros_like(d.positions)) for d in draws]
    seen = torch.cat([TrainingPool(train).gather(d)[0] for d in same]).flatten(1)
    assert len(torch.unique(seen, dim=0)) == len(seen)
    spread = seen.view(6, 2, 20, -1).std(3).mean((0, 2)) * 63.75
    torch.testing.assert_close(spread, torch.tensor([10.0, 30.0]), rtol=0.05, atol=0)


@given(st.lists(st.integers(0, 49), min_size=1, max_size=20), st.integers(1, 9))
def test_measured_noise_is_the_images_own(positions: list[int], size: int) -> None:
    """Whatever is measured with it, and in whatever chunks."""
    examples = resident_splits(noisy_copies(), CPU, seed=1)["train"]["sigma_30"]
    whole = torch.cat([images for images, _ in chunks(examples, 50)])
    some = torch.cat([images for images, _ in chunks(examples, size, torch.tensor(positions))])
    assert some.equal(whole[positions])


def test_measured_noise_differs_by_seed_domain_split_and_image() -> None:
    def images(seed: int, split: str, name: str) -> torch.Tensor:
        examples = resident_splits(noisy_copies((0.0, 30.0, 30.5)), CPU, seed)[split][name]
        return next(chunks(examples, 20))[0]

    one = images(0, "test", "sigma_30")
    assert one.equal(images(0, "test", "sigma_30"))
    assert len(torch.unique(one.flatten(1), dim=0)) == 20
    others = [(1, "test", "sigma_30"), (0, "train", "sigma_30"), (0, "test", "sigma_30.5")]
    for other in others:
        assert (one == images(*other)).float().mean() < 0.1
    clean = images(0, "test", "sigma_0")
    assert (clean == clean[0, 0, 0, 0]).all()


def test_held_out_images_keep_their_noise() -> None:
    """It goes by the image's row, not by its place in the split."""
    train = noisy_copies()["sigma_10"].train
    some = Shelf([ResidentExamples(train.subset([5, 9, 30]), CPU)]).gather(torch.arange(3))[0]
    assert some.equal(Shelf([ResidentExamples(train, CPU)]).gather(torch.tensor([5, 9, 30]))[0])
