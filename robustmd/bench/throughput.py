"""Images a second in training and in measurement, and what share of that is ours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from robustmd.bench.timing import Ratio, interleaved, paired_ratio
from robustmd.bench.workload import Workload, random_domains
from robustmd.training.images import resident_splits
from robustmd.training.learner import build_learner
from robustmd.training.measurement import images_at_once, measure
from robustmd.training.pool import chunks


@dataclass(frozen=True)
class Measuring:
    """A whole measurement beside the bare forward passes over the same images.

    images_per_second: of `measure`; ratio: its time over the bare one's.
    """

    images_per_second: float
    ratio: Ratio


def measuring(
    workload: Workload, device: torch.device, precision: str, images: int, rounds: int
) -> Measuring:
    """`measure` against forward passes over chunks that already lie normalised on the device.

    Args:
        images: how many are measured each time.
        rounds: >= 1 measurements of each kind, in turns.
    """
    domains = random_domains(1, workload.side, images)
    learner = build_learner(workload.config("even", precision), domains, 1, device)
    splits = resident_splits(domains, device)["train"]
    size = images_at_once(splits["domain_0"])
    there = [pixels for pixels, _ in chunks(splits["domain_0"], size)]

    def bare() -> None:
        learner.model.eval()
        with torch.inference_mode():
            for pixels in there:
                learner.logits(pixels)

    def whole() -> None:
        measure(learner.logits, splits)

    seconds = interleaved({"ours": whole, "bare": bare}, rounds, device, warm_up=1)
    median = float(sorted(seconds["ours"])[rounds // 2])
    ratio = paired_ratio(seconds["ours"], seconds["bare"])
    return Measuring(len(splits["domain_0"]) / median, ratio)


def training_flop(workload: Workload, device: torch.device) -> int:
    """Floating-point operations of one iteration's forward and backward pass, as torch counts."""
    domains = random_domains(2, workload.side, workload.batch_size)
    model = build_learner(workload.config("even"), domains, 2, device).model
    images = torch.zeros(workload.batch_size, 3, workload.side, workload.side, device=device)
    with FlopCounterMode(display=False) as counter:
        model(images).sum().backward()
    return int(counter.get_total_flops())
