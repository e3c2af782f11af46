"""data.augment: what is done to training images, drawn from the run's streams."""

import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import composed, rows
from torchvision.transforms.v2 import functional

import robustmd
from robustmd.augmentations import recoloured, replaced, standard
from robustmd.config.identity import number_changing
from robustmd.config.plugins import described, load_plugins
from robustmd.config.settings import as_dict
from robustmd.config.validation import validate
from robustmd.domains import DomainSet
from robustmd.errors import UserError
from robustmd.registry import AUGMENTATIONS, Augmentation
from robustmd.training.batches import BatchStream
from robustmd.training.fast_iteration import why_not
from robustmd.training.plan import Plan
from robustmd.training.pool import TrainingPool, augmented, resident_splits

PAGE = Path(__file__).parents[2] / "docs" / "augmentation.md"
IMAGES = torch.randint(0, 256, (6, 12, 20, 3), generator=torch.Generator().manual_seed(0))
IMAGES = IMAGES.to(torch.uint8).permute(0, 3, 1, 2)
STILL = [0.0, 0.5, 0.5, 0.5, 0.9, 0.5, 0.5, 0.5, 0.5, 0.5]  # what changes nothing


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """What a test registers is forgotten."""
    before = dict(AUGMENTATIONS)
    yield
    AUGMENTATIONS.clear()
    AUGMENTATIONS.update(before)


@pytest.fixture
def of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The code that the page shows, imported."""
    (code,) = re.findall(r"```python\n(.+?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "my_augment.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    load_plugins(["my_augment"])
    yield
    del sys.modules["my_augment"]


def drawn(**changes: float) -> torch.Tensor:
    names = ["area", "ratio", "right", "low", "side", "angle"]
    names += ["brightness", "contrast", "saturation", "hue"]
    values = [changes.get(name, value) for name, value in zip(names, STILL, strict=True)]
    return torch.tensor([values]).expand(len(IMAGES), 10)


def test_standard_can_leave_an_image_and_mirror_it() -> None:
    whole = IMAGES.float()
    torch.testing.assert_close(standard(IMAGES, drawn()), whole, atol=1e-3, rtol=0)
    mirrored = standard(IMAGES, drawn(side=0.1))
    torch.testing.assert_close(mirrored, whole.flip(3), atol=1e-3, rtol=0)


def test_the_crop_is_a_part_enlarged_and_the_turn_is_torchvisions() -> None:
    image = IMAGES[:1].float()
    at = drawn(area=1.0, right=1.0, low=0.0)[:1, :6]  # area 0.7 in the upper right corner
    side = math.sqrt(0.7)
    ramp = torch.arange(20).expand(1, 3, 12, 20).float()
    found = replaced(ramp, at)[0, 0, 5]
    # Its centre is at 1 − side: the pixel at u, from −1 to 1, shows what was at 1 − side + side·u.
    u = (torch.arange(20) * 2 + 1) / 20 - 1
    due = ((1 - side + side * u + 1) * 20 - 1) / 2
    torch.testing.assert_close(found[:-1], due[:-1], atol=1e-4, rtol=0)
    turned = replaced(image, drawn(angle=1.0)[:1, :6])
    bilinear = functional.InterpolationMode.BILINEAR
    theirs = functional.rotate(image, 15, interpolation=bilinear)
    inner = (slice(None), slice(None), slice(3, 9), slice(6, 14))
    torch.testing.assert_close(turned[inner], theirs[inner], atol=1e-2, rtol=0)


def test_colours_by_hand() -> None:
    x = IMAGES.float()
    bright = recoloured(x, drawn(brightness=1.0)[:, 6:])
    torch.testing.assert_close(bright, 1.3 * x)
    mean = x.mean((1, 2, 3), keepdim=True)
    flat = recoloured(x, drawn(contrast=0.0)[:, 6:])
    torch.testing.assert_close(flat, 0.7 * x + 0.3 * mean, atol=1e-3, rtol=0)
    gray = x.mean(1, keepdim=True)
    pale = recoloured(x, drawn(saturation=0.0)[:, 6:])
    torch.testing.assert_close(pale, gray + 0.7 * (x - gray), atol=1e-3, rtol=0)
    hue = recoloured(x.clamp(100, 150), drawn(hue=1.0)[:, 6:])
    before = x.clamp(100, 150) - x.clamp(100, 150).mean(1, keepdim=True)
    after = hue - hue.mean(1, keepdim=True)
    angle = torch.nn.functional.cosine_similarity(before, after, dim=1)
    there = before.norm(dim=1) > 5
    torch.testing.assert_close(angle[there], torch.full_like(angle[there], math.cos(0.2 * math.pi)))


def test_chance_depends_on_seed_and_iteration(domains: DomainSet) -> None:
    train = {d.name: d.train for d in domains}

    def chance(iteration: int, seed: int = 0) -> torch.Tensor:
        stream = BatchStream(train, 20, seed, augmentation=AUGMENTATIONS["standard"])
        found = stream.draw(iteration).chance
        assert found is not None
        return found

    one = chance(7)
    assert one.shape == (2, 10, 10)
    assert one.dtype == torch.float32
    assert (one >= 0).all()
    assert (one < 1).all()
    assert torch.equal(one, chance(7))
    assert not torch.equal(one, chance(8))
    assert not torch.equal(one, chance(7, seed=1))


@pytest.mark.parametrize("shares", [None, [3.0, 1.0]])
@pytest.mark.parametrize("numbers", [10, None])
def test_a_batch_is_augmented_and_a_measurement_is_not(
    domains: DomainSet, numbers: int | None, shares: list[float] | None
) -> None:
    seen = []

    def noted(images: torch.Tensor, *chance: torch.Tensor) -> torch.Tensor:
        seen.append([images.shape, *(part.shape for part in chance)])
        return images.float() / 2 + 0.25  # 0.25 or 0.75 above a whole number

    halved = Augmentation("halved", noted, numbers)
    batches = BatchStream({d.name: d.train for d in domains}, 20, 0, None, shares, halved)
    splits = [*resident_splits(domains, torch.device("cpu"))["train"].values()]
    pools = [TrainingPool(splits, batches.counts, how) for how in (None, halved)]
    (plain, _), (changed, _) = (pool.gather(batches.draw(3)) for pool in pools)
    before, after = ((images + 2) * 63.75 for images in (plain, changed))
    torch.testing.assert_close(after, (before / 2 + 0.25).round(), atol=1e-3, rtol=0)
    assert changed.is_contiguous(memory_format=torch.channels_last)
    assert seen == [[(20, 3, 32, 32)] if numbers is None else [(20, 3, 32, 32), (20, 10)]]
    reason = why_not(batches, pools[1])
    assert (reason is not None and "halved" in reason) == (numbers is None)


def test_torchs_generators_are_seeded_for_a_batch_and_put_back() -> None:
    own = Augmentation(
        "own", lambda images: images + torch.randint(9, (len(images), 1, 1, 1)), None
    )
    images = torch.zeros(4, 2, 2, 3, dtype=torch.uint8)
    torch.manual_seed(5)
    due = torch.rand(3)
    torch.manual_seed(5)
    found = [augmented(images, own, torch.tensor([[key, 0]])) for key in (1, 1, 2)]
    assert torch.equal(torch.rand(3), due)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.usefixtures("of_the_page")
@pytest.mark.parametrize("name", ["standard", "randaugment"])
def test_a_run_goes_on_to_the_same_bytes_and_measures_plain_images(
    train: Callable[..., Any], gone_on: Callable[..., Any], name: str
) -> None:
    _, whole = gone_on("method=opt", f"data.augment={name}", after=7)
    ours, without = rows(whole), rows(train("method=opt").directory)
    first = [row for row in ours if row["iteration"] == "0"]
    assert first == [row for row in without if row["iteration"] == "0"]
    assert ours != without


@pytest.mark.usefixtures("of_the_page")
def test_each_function_of_the_page_keeps_the_shape() -> None:
    assert AUGMENTATIONS["randaugment"].of(IMAGES).shape == IMAGES.shape
    still = AUGMENTATIONS["shifted"].of(IMAGES, torch.full((6, 2), 0.5))
    assert torch.equal(still, IMAGES)
    moved = AUGMENTATIONS["shifted"].of(IMAGES, torch.tensor([[0.5, 0.9]]).expand(6, 2))
    assert torch.equal(moved, IMAGES.roll(-2, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_features_are_no_images(dtype: torch.dtype) -> None:
    features, labels = torch.zeros(8, 5, dtype=dtype), torch.arange(8) % 2
    found = DomainSet.from_tensors(dict.fromkeys("ab", (features, labels) * 2))
    with pytest.raises(UserError, match=r"data\.augment=standard: is of images, and data tensors"):
        Plan.of(composed("data.augment=standard"), found, torch.device("cpu"))


def test_no_augmentation_is_in_no_identity_and_one_is() -> None:
    def of(*given: str) -> dict[str, Any]:
        return number_changing(as_dict(composed("data=digits_mini", *given)))["data"]

    assert of() == of("data.augment=none") == {"name": "digits_mini"}
    assert of("data.augment=standard") == {"name": "digits_mini", "augment": "standard"}


def test_own_code_is_named_and_what_is_wrong_is_one_line() -> None:
    @robustmd.augment("smaller", numbers=0)
    def smaller(images: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
        return images[:, :, 1:]

    config = composed("data.augment=smaller")
    validate(config)
    assert [one["module"] for one in described(config)] == [__name__]
    with pytest.raises(UserError, match=r"data.augment=smaller: makes images \[2, 3, 1, 2\]"):
        augmented(torch.zeros(2, 2, 2, 3), AUGMENTATIONS["smaller"], torch.zeros(1, 2, 0))
    with pytest.raises(UserError, match=r"augment=biger: must be one of none, standard, smaller;"):
        validate(composed("data.augment=biger"))
    with pytest.raises(UserError, match=r"'standard'.* has that name"):
        robustmd.augment("standard")(smaller)
    with pytest.raises(UserError, match="none means"):
        robustmd.augment("none")(smaller)
