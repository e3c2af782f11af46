"""A CUDA device gets the same batches, and the host does not wait for it.

Imports only what `scripts/gpu_check.sh` finds on a bare GPU machine.
"""

import numpy as np
import pytest
import torch
from tiny import composed, synthetic_domains

from robustmd.domains import Domain, DomainSet, Examples, Views
from robustmd.domains.examples import VARIANTS
from robustmd.registry import AUGMENTATIONS
from robustmd.training.batches import BatchStream, Draw
from robustmd.training.history import Clock, History
from robustmd.training.learner import build_learner
from robustmd.training.loop import Parts, iterate
from robustmd.training.pool import ResidentExamples, TrainingPool, resident_splits

VIEWS = (
    Views(crop=16),
    Views(crop=16, sigma=30.0),
    Views(("rotate_20",), crop=16, sigma=9.0),
    Views(tuple(VARIANTS), crop=16),
)


@pytest.fixture(params=["cuda", "cuda:0"])  # tensors are always on the second
def cuda(request: pytest.FixtureRequest) -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("this machine has no CUDA device")
    return torch.device(request.param)


def domains() -> DomainSet:
    """Four domains, on one array: cropped, noisy, turned and noisy, in ten variants."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (50, 20, 20, 3), dtype=np.uint8)
    labels = np.arange(50) % 5
    made = [Examples(images, labels, views=view) for view in VIEWS]
    named = tuple(Domain(f"d{k}", split, split) for k, split in enumerate(made))
    return DomainSet("seen", named, tuple("01234"), "")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("drawn", "share", "augment"),
    [(None, None, "none"), (2, None, "none"), (None, 3, "none"), (None, None, "standard")],
)
def test_the_same_batch_without_making_the_host_wait(
    cuda: torch.device, drawn: int | None, share: int | None, augment: str
) -> None:
    """share: of the first domain, where the others have 1 each; None: all have the same."""
    found, augmentation = domains(), AUGMENTATIONS.get(augment)
    shares = [share] + [1] * (len(found) - 1) if share else None
    train = {d.name: d.train for d in found}
    batches = BatchStream(train, 40, 0, drawn, shares, augmentation)
    on_cpu, on_cuda = (
        TrainingPool(
            [*resident_splits(found, device)["train"].values()], batches.counts, augmentation
        )
        for device in (torch.device("cpu"), cuda)
    )
    for iteration in range(3):
        draw = batches.draw(iteration)
        ours, labels_here = on_cpu.gather(draw)
        if drawn is None:  # else the pool asks the host whose domains were drawn: two shelves
            draw = draw.each(lambda part: part.to(cuda))
        torch.cuda.set_sync_debug_mode("error")
        try:
            there, labels_there = on_cuda.gather(draw)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert labels_there.cpu().equal(labels_here)
        levels = ((x.cpu() + 2).mul(63.75).round() for x in (ours, there))
        assert torch.sub(*levels).abs().max() <= 1  # a turned pixel may be rounded otherwise


@pytest.mark.gpu
def test_images_on_the_host_reach_it_without_making_the_host_wait(cuda: torch.device) -> None:
    split = domains()["d0"].train
    here = TrainingPool([ResidentExamples(split, cuda, torch.from_numpy(split.images))])
    there = TrainingPool([ResidentExamples(split, cuda)])
    assert (here.resident, there.resident) == (False, True)
    draw = Draw(torch.arange(20)[None])
    torch.cuda.set_sync_debug_mode("error")
    try:
        batch, targets = here.gather(draw)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    expected, labels = there.gather(draw)
    assert batch.equal(expected)
    assert targets.equal(labels)


@pytest.mark.gpu
def test_some_of_several_arrays_domains_train(cuda: torch.device) -> None:
    """The draws stay on the host, which decides by them which arrays to read."""
    config = composed("method=opt", "backbone.width=0.05", "training.iterations=40")
    found = synthetic_domains()
    learner = build_learner(config, found, 2, cuda, [60, 60])
    pool = TrainingPool([*resident_splits(found, cuda)["train"].values()])
    assert pool.resident
    batches = BatchStream({d.name: d.train for d in found}, 20, 0, 1)
    history = History(found.names, 5, cuda)
    made = Parts(learner, batches, pool, history, Clock(cuda))
    for _ in range(5):
        iterate(made)
    drawn = [[loss == loss for loss in row.batch_losses] for row in history.read()]  # noqa: PLR0124
    assert all(sum(present) == 1 for present in drawn)
