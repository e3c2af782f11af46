"""One gather for many domains gives what a gather for each would."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from robustmd.domains.domain import Domain, DomainSet, Examples
from robustmd.domains.examples import Views
from robustmd.training.batches import BatchStream, Draw
from robustmd.training.pool import (
    ResidentExamples,
    Shelf,
    TrainingPool,
    chunks,
    resident_splits,
    where_images_are,
)

CPU = torch.device("cpu")
VIEWS = [
    Views(),
    Views(sigma=12.0),
    Views(("rotate_90",), sigma=12.0),
    Views(("rotate_20",)),
    Views(("flip_vertical",), sigma=30.0),
]


def shared_domains(seed: int = 0, crop: int | None = None) -> DomainSet:
    """Five domains on one array, two of them on part of it, and one on an array of its own."""
    random = np.random.default_rng(seed)
    images = random.integers(0, 256, (40, 12, 12, 3), dtype=np.uint8)
    labels = np.arange(40) % 4
    rows = [None, np.arange(20), None, np.arange(20, 40), np.array([3, 9])]
    made = []
    for k, (view, some) in enumerate(zip(VIEWS, rows, strict=True)):
        split = Examples(images, labels, some, replace(view, crop=crop))
        made.append(Domain(f"d{k}", split, split))
    alone = Examples(images[:7].copy(), labels[:7], views=Views(crop=crop))
    made.append(Domain("alone", alone, alone))
    return DomainSet("shared", tuple(made), ("0", "1", "2", "3"), "")


def one_by_one(splits: list[ResidentExamples], draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The batch of the drawn domains, each gathered for itself."""
    numbers = range(len(splits)) if draw.domains is None else draw.domains.tolist()
    parts = [
        Shelf([splits[k]]).gather(
            draw.positions[i],
            None,
            None if draw.corners is None else draw.corners[i],
            None if draw.noise_keys is None else draw.noise_keys[i],
        )
        for i, k in enumerate(numbers)
    ]
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])


@pytest.mark.parametrize("crop", [None, 8])
@pytest.mark.parametrize("drawn", [None, 1, 3])
def test_a_batch_is_that_of_its_domains_one_by_one(crop: int | None, drawn: int | None) -> None:
    domains = shared_domains(crop=crop)
    splits = [*resident_splits(domains, CPU)["train"].values()]
    pool = TrainingPool(splits)
    assert [len(shelf._noise_starts) for shelf in pool.shelves] == [5, 1]
    batches = BatchStream({d.name: d.train for d in domains}, 12, 0, drawn)
    for iteration in range(30):
        draw = batches.draw(iteration)
        images, labels = pool.gather(draw)
        expected, targets = one_by_one(splits, draw)
        assert labels.equal(targets)
        assert (images + 2).mul(63.75).round().permute(0, 2, 3, 1).equal(expected.float())


def test_a_batch_with_unequal_shares_has_each_domains_own_examples() -> None:
    domains = shared_domains(crop=8)
    splits = [*resident_splits(domains, CPU)["train"].values()]
    shares = [3, 1, 2, 1, 1, 4]
    batches = BatchStream({d.name: d.train for d in domains}, 12, 0, shares=shares)
    pool = TrainingPool(splits, batches.counts)
    whose = torch.arange(6).repeat_interleave(torch.tensor(shares))
    for iteration in range(10):
        draw = batches.draw(iteration)
        images, labels = pool.gather(draw)
        expected, targets = one_by_one(splits, draw._replace(domains=whose))
        assert labels.equal(targets)
        assert (images + 2).mul(63.75).round().permute(0, 2, 3, 1).equal(expected.float())


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.data())
def test_measured_images_do_not_depend_on_who_shares(whose: list[int], data: st.DataObject) -> None:
    """Without draws: crops in the centre, and each image's own noise."""
    splits = [*resident_splits(shared_domains(crop=8), CPU, seed=3)["test"].values()][:5]
    positions = [data.draw(st.integers(0, len(splits[k]) - 1)) for k in whose]
    together, labels = Shelf(splits).gather(torch.tensor(positions), torch.tensor(whose))
    centre = torch.full((len(whose), 2), (12 - 8) // 2)
    drawn, _ = Shelf(splits).gather(torch.tensor(positions), torch.tensor(whose), centre)
    assert drawn.equal(together)
    for image, label, k, position in zip(together, labels, whose, positions, strict=True):
        alone, target = Shelf([splits[k]]).gather(torch.tensor([position]))
        assert image.equal(alone[0])
        assert label == target[0]


def test_chunks_are_the_split_in_order() -> None:
    split = resident_splits(shared_domains(), CPU)["train"]["d3"]
    parts = [*chunks(split, 8)]
    assert [len(labels) for _, labels in parts] == [8, 8, 4]
    assert torch.cat([labels for _, labels in parts]).equal(split.labels)


def test_where_the_images_are_is_said_of_a_device_that_is_no_cpu() -> None:
    assert where_images_are(resident_splits(shared_domains(), CPU)) is None
    gpu = torch.device("cuda", 0)
    there, here = (
        SimpleNamespace(device=gpu, images=SimpleNamespace(device=where, nbytes=21_000_000))
        for where in (gpu, CPU)
    )
    assert where_images_are({"train": {"a": there, "b": there}}) == "images: 21 MB, all on cuda:0"
    both = where_images_are({"train": {"a": there, "b": here}})
    assert both is not None
    assert both.startswith("images: 21 MB on cuda:0; 21 MB would take more than 50% of its free")
