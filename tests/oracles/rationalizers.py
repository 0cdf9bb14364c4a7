"""A rationalizer by P1's equations, written out for one text: plain tensor code, no transformers, no raison."""

from __future__ import annotations

import math
from typing import Any

import torch

__all__ = ["LiteralRationalizer"]


class LiteralRationalizer:
    """BERT by its definition and P1's generator and predictor on it, from a dictionary of weights."""

    def __init__(self, weights: dict[str, torch.Tensor], special: list[int], heads: int):
        self.weights, self.special, self.heads = weights, special, heads
        self.depth = 1 + max(
            int(name.split(".")[3]) for name in weights if name.startswith("encoder.encoder.layer.")
        )

    def linear(self, name: str, states: torch.Tensor) -> torch.Tensor:
        return states @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name: str, states: torch.Tensor, small: float) -> torch.Tensor:
        moved = states - states.mean(-1, keepdim=True)
        scaled = moved / (moved.square().mean(-1, keepdim=True) + small).sqrt()
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def embed(self, ids: list[int]) -> torch.Tensor:
        table = "encoder.embeddings."
        rows = [
            self.weights[table + "word_embeddings.weight"][number]
            + self.weights[table + "position_embeddings.weight"][place]
            + self.weights[table + "token_type_embeddings.weight"][0]
            for place, number in enumerate(ids)
        ]
        return self.norm(table + "LayerNorm", torch.stack(rows), 1e-12)

    def block(self, number: int, states: torch.Tensor, visible: list[bool]) -> torch.Tensor:
        """Attention to visible tokens, and what follows it."""
        name = f"encoder.encoder.layer.{number}."
        query, key, value = (
            self.linear(f"{name}attention.self.{part}", states)
            for part in ("query", "key", "value")
        )
        size = states.shape[-1] // self.heads
        mixed = torch.zeros_like(states)
        for head in range(self.heads):
            own = slice(head * size, (head + 1) * size)
            for place in range(len(states)):
                marks = [
                    math.exp(float(query[place, own] @ key[other, own]) / math.sqrt(size))
                    if visible[other]
                    else 0.0
                    for other in range(len(states))
                ]
                for other, mark in enumerate(marks):
                    mixed[place, own] += mark / sum(marks) * value[other, own]
        inner = self.norm(
            f"{name}attention.output.LayerNorm",
            self.linear(f"{name}attention.output.dense", mixed) + states,
            1e-12,
        )
        wide = self.linear(f"{name}intermediate.dense", inner)
        wide = wide * (1 + torch.erf(wide / math.sqrt(2))) / 2
        return self.norm(
            f"{name}output.LayerNorm", self.linear(f"{name}output.dense", wide) + inner, 1e-12
        )

    def run(
        self, ids: list[int], config: Any
    ) -> tuple[list[list[int]], torch.Tensor, torch.Tensor]:
        """Masks behind pruning blocks, logits from the rationale, logits from the full text."""
        words = [number not in self.special for number in ids]
        everyone = [True] * len(ids)
        embedded = self.embed(ids)
        before = config.blocks - config.pruning  # blocks of the generator that drop nothing
        states = embedded
        for number in range(before):
            states = self.block(number, states, everyone)
        middle = states
        kept = list(words)
        masks = []
        for number in range(before, config.blocks):
            seen = [kept[place] or not words[place] for place in range(len(ids))]
            if config.hide == "zero":  # P1's code: pruned states are 0, and attention does not know
                states = self.block(number, states * torch.tensor(seen)[:, None], everyone)
            else:
                states = self.block(number, states, seen)
            logits = self.linear("selector.linear", self.norm("selector.norm", states, 1e-5))
            line = float(
                self.weights["selector.offsets"][number - before, 0]
            )  # drawn by calibration
            kept = [
                kept[k] and float(logits[k, 1] - logits[k, 0]) + line > 0 for k in range(len(ids))
            ]
            masks.append([int(each) for each in kept])
        first = config.blocks if config.predictor == "rest" else 0
        last_word = max(place for place, word in enumerate(words) if word)
        seen = [
            kept[place] or (not words[place] and place < last_word) for place in range(len(ids))
        ]
        states = embedded  # of the rationale: nothing that the generator computed
        for number in range(first, self.depth):
            if config.hide == "zero":
                shown = kept if number == first else seen  # [CLS] is 0 too at first
                states = self.block(number, states * torch.tensor(shown)[:, None], everyone)
            else:
                states = self.block(number, states, seen)
        return masks, self.answer(states, seen, config), self.answer(middle, everyone, config)

    def answer(self, states: torch.Tensor, seen: list[bool], config: Any) -> torch.Tensor:
        chosen = states[0] if config.read == "first" else states[torch.tensor(seen)].mean(0)
        return self.linear("classifier", chosen)
