"""Hugging Face's Trainer on texts of several sources, with a tiny model of random weights.

pip install transformers accelerate
python examples/trainer_text_sources.py
"""

import tempfile
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from robustmd.adversary import Adversary, MirrorAscent, domain_means

SOURCES = {  # (text, is it praise?)
    "reviews": [("a fine film, well made", 1), ("a dull film, badly made", 0)] * 8,
    "mail": [("thank you, it works well", 1), ("it is broken, refund me", 0)] * 4,
    "forum": [("lol nice one", 1), ("meh, not for me", 0), ("gr8 stuff", 1), ("nope", 0)] * 2,
}
LENGTH = 32


class RobustTrainer(Trainer):
    """Its batches have a column "domain". One update a batch: no gradient accumulation."""

    def __init__(self, adversary: Adversary, **options: Any) -> None:
        super().__init__(**options)
        self.adversary = adversary.to(self.args.device)

    def compute_loss(
        self, model: torch.nn.Module, inputs: dict[str, Any], return_outputs: bool = False, **_: Any
    ) -> Any:
        domains, labels = inputs.pop("domain"), inputs.pop("labels")
        outputs = model(**inputs)
        each = cross_entropy(outputs.logits, labels, reduction="none")
        if model.training:
            losses, counts = domain_means(each, domains, self.adversary.num_domains)
            loss = self.adversary.weighted_loss(losses, counts=counts)
        else:
            loss = each.mean()
        return (loss, outputs) if return_outputs else loss


def examples() -> list[dict[str, Any]]:
    """A row for each text: its letters as tokens, whether it is praise, and its source's number."""
    rows = []
    for place, texts in enumerate(SOURCES.values()):
        for text, label in texts:
            tokens = [ord(letter) % 128 for letter in text.ljust(LENGTH)[:LENGTH]]
            rows.append({"input_ids": tokens, "labels": label, "domain": place})
    return rows


def main(steps: int = 100) -> RobustTrainer:
    """Trains; gives the trainer."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=128,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LENGTH,
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=steps,
            per_device_train_batch_size=12,
            learning_rate=1e-2,
            remove_unused_columns=False,  # the model knows no "domain"
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = RobustTrainer(
            MirrorAscent(len(SOURCES), 0.5, total_steps=steps),
            model=BertForSequenceClassification(config),
            args=arguments,
            train_dataset=examples(),
        )
        trainer.train()
    return trainer


if __name__ == "__main__":
    weights = main().adversary.weights.tolist()
    print(dict(zip(SOURCES, weights, strict=True)))
