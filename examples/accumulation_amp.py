"""Gradient accumulation and mixed precision: one update of the weights for each optimizer step.

python examples/accumulation_amp.py
"""

import torch
from own_loop import DOMAINS, batch
from torch.nn.functional import cross_entropy

from robustmd.adversary import Adversary, GroupDRO, domain_means

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PRECISION = torch.float16 if DEVICE == "cuda" else torch.bfloat16
K = len(DOMAINS)
Part = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # inputs, labels, domains


def step(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    adversary: Adversary,
    parts: list[Part],
) -> None:
    """One step on a large batch in parts, each with a forward and a backward pass of its own."""
    total = torch.stack([torch.bincount(domains, minlength=K) for *_, domains in parts]).sum(0)

    def added(part: Part) -> torch.Tensor:
        """What a part adds to the mean losses [K] of the whole batch."""
        inputs, labels, domains = part
        with torch.autocast(DEVICE, dtype=PRECISION):
            logits = model(inputs)
        each = cross_entropy(logits.float(), labels, reduction="none")
        means, counts = domain_means(each, domains, K)
        return means * counts / total.clamp(min=1)

    if adversary.weighs == "current":  # its weights answer this very batch: look at all of it first
        with torch.no_grad():
            adversary.update(torch.stack([added(part) for part in parts]).sum(0), total > 0)
    optimizer.zero_grad()
    losses = torch.zeros(K, device=DEVICE)
    for part in parts:
        of_part = added(part)
        scaler.scale((adversary.weights * of_part).sum()).backward()
        losses += of_part.detach()
    scaler.step(optimizer)  # not where a gradient is not finite
    scaler.update()
    if adversary.weighs == "next":
        adversary.update(losses, total > 0)


def main(steps: int = 200, adversary: Adversary | None = None) -> Adversary:
    """Trains with four parts a step; gives the adversary."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
    model = torch.nn.Sequential(*layers).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler(DEVICE, enabled=torch.float16 == PRECISION)
    adversary = (adversary or GroupDRO(K, eta=0.1)).to(DEVICE)
    for _ in range(steps):
        parts = [tuple(tensor.to(DEVICE) for tensor in batch(16)) for _ in range(4)]
        step(model, optimizer, scaler, adversary, parts)
    return adversary


if __name__ == "__main__":
    trained = main()
    print(f"{int(trained.steps)} updates, weights {trained.weights.tolist()}")
