"""How much of each text to train a language model on: DoReMi's three steps, with a tiny GPT.

python examples/language_model.py

Three sources: sums, sentences, and letters by chance, of which nothing can be learned. DoReMi
weighs by the loss above a reference's. With main(1000), seeds 0 and 1: letters have weight 0.40 and
0.43, and 0.97 and 0.96 where the loss itself takes the excess's place. The sums' perplexity falls
from 4.9 and 4.8 to 4.3 and 4.3, the sentences' rises from 1.25 and 1.26 to 1.33 and 1.34.
"""

import random

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from robustmd.adversary import DoReMi, domain_means

SOURCES = ("sums", "sentences", "letters")
LENGTH, PADDING = 24, 0
WORDS = {"who": ("the cat", "a dog", "my aunt"), "does": ("sees", "likes"), "what": ("it", "us")}


def line(source: str, chance: random.Random) -> str:
    """One text of a source."""
    if source == "sums":
        one, other = chance.randrange(100), chance.randrange(100)
        return f"{one}+{other}={one + other}"
    if source == "sentences":
        return " ".join(chance.choice(words) for words in WORDS.values())
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randrange(8, 20)))


def batch(weights: Tensor, size: int, chance: random.Random) -> tuple[Tensor, Tensor]:
    """(tokens int64 [size, LENGTH], source int64 [size]), sources drawn with these weights [K]."""
    places = chance.choices(range(len(SOURCES)), weights.tolist(), k=size)
    texts = [f"\n{line(SOURCES[place], chance)}\n" for place in places]
    tokens = [[ord(letter) for letter in text] for text in texts]
    padded = [one + [PADDING] * (LENGTH - len(one)) for one in tokens]
    return torch.tensor(padded), torch.tensor(places)


class TinyGPT(nn.Module):
    """Tokens int64 [n, L] to logits [n, L, 128]; no position sees a later one."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.token = nn.Embedding(128, width)
        self.place = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, 2, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 128)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        inputs = self.token(tokens) + self.place(torch.arange(length))
        return self.head(self.layers(inputs, mask=mask, is_causal=True))


def token_losses(model: nn.Module, tokens: Tensor) -> Tensor:
    """Cross entropy of each token given those before it [n, L - 1], nats."""
    logits = model(tokens[:, :-1])
    return cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")


def of_sources(values: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    """Mean of a value a token over the tokens of each source [K]; padding does not count."""
    is_text = tokens[:, 1:] != PADDING
    whose = places[:, None].expand_as(values)
    return domain_means(values[is_text], whose[is_text], len(SOURCES))[0]


def trained(weights: Tensor, steps: int, seed: int) -> TinyGPT:
    """A model trained on sources drawn with these weights."""
    torch.manual_seed(seed)
    model, chance = TinyGPT(), random.Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(steps):
        tokens, _ = batch(weights, 32, chance)
        loss = token_losses(model, tokens)[tokens[:, 1:] != PADDING].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def mixture(reference: nn.Module, steps: int, seed: int) -> Tensor:
    """The weights [K] that a proxy model finds, whose sources are drawn uniformly."""
    torch.manual_seed(seed)
    proxy, adversary, chance = TinyGPT(), DoReMi(len(SOURCES)), random.Random(seed + 1)
    optimizer = torch.optim.AdamW(proxy.parameters(), 3e-3)
    for _ in range(steps):
        tokens, places = batch(torch.ones(len(SOURCES)), 32, chance)
        losses = token_losses(proxy, tokens)
        with torch.no_grad():
            excess = (losses - token_losses(reference, tokens)).clamp(min=0)
        there = torch.bincount(places, minlength=len(SOURCES)) > 0
        adversary.update(of_sources(excess, tokens, places), there)
        optimizer.zero_grad()
        (adversary.weights * of_sources(losses, tokens, places)).sum().backward()
        optimizer.step()
    return adversary.average.float()


@torch.no_grad()
def perplexities(model: nn.Module) -> list[float]:
    """Of each source, on 300 new texts of all."""
    tokens, places = batch(torch.ones(len(SOURCES)), 300, random.Random(10**6))
    return of_sources(token_losses(model, tokens), tokens, places).exp().tolist()


def main(steps: int = 400, seed: int = 0) -> tuple[Tensor, list[float], list[float]]:
    """The mixture, and every source's perplexity before (uniform) and after."""
    uniform = torch.ones(len(SOURCES)) / len(SOURCES)
    reference = trained(uniform, steps, seed)
    weights = mixture(reference, steps, seed)
    final = trained(weights, steps, seed)
    return weights, perplexities(reference), perplexities(final)


if __name__ == "__main__":
    for name, weight, before, after in zip(SOURCES, *main(), strict=True):
        print(f"{name:<10} weight {weight:.2f}  perplexity {before:.2f} → {after:.2f}")
