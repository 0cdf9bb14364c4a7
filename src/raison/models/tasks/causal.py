"""Causal language models: the target is the next token, any token of the text, or a continuation."""

from __future__ import annotations

from dataclasses import replace

import torch

from raison.core.records import Encoding, Example, Target
from raison.core.text_splitting import kind_of
from raison.models.axis import axis_of
from raison.models.protocol import PREDICTED, TargetSpec
from raison.models.tasks.generation import Writer

__all__ = ["CausalLM"]


class CausalLM(Writer):
    """A decoder; without a target the next token is explained."""

    task = "causal"

    def encode_one(self, example: Example, *, truncate: bool) -> Encoding:
        text = example.text if example.pair is None else f"{example.text}\n{example.pair}"
        joined = replace(example, text=text, pair=None)
        return axis_of(self, joined, ("text",), truncate=truncate, from_start=True)

    def first_position(self, encoding: Encoding) -> int:
        return 1

    def started(self, encoding: Encoding) -> dict[str, torch.Tensor]:
        ids = torch.from_numpy(encoding.ids.copy()).to(self.device)[None]
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def resolve_targets(self, encoding: Encoding, target_spec: TargetSpec = PREDICTED) -> list[tuple[Encoding, Target]]:
        if target_spec.target is not None:
            return self.aimed_at(encoding, target_spec)
        return [(encoding, self.finished(encoding, self.said(encoding, target_spec), target_spec))]

    def pieces_of(self, encoding: Encoding, position: int, text: str) -> list[int]:
        """What the tokenizer adds when the text stands behind what comes before.

        Two words get a space between them; before punctuation, inside brackets and between Han characters nothing
        is added, and a space that the user typed counts.
        """
        whole = encoding.texts[0]
        inside = position < len(encoding) and encoding.segment[position] == 0
        before = whole[: encoding.start[position]].rstrip() if inside else whole
        glue = whole[len(before) : encoding.start[position]] + space_of(encoding, position) if inside else ""
        if not glue and before and kind_of(before[-1]) == kind_of(text[0]) == "letter":
            glue = " "
        stem = self.codec(before).ids.tolist() if before else []
        joined = self.codec(before + glue + text).ids.tolist()
        if joined[: len(stem)] == stem and len(joined) > len(stem):
            return joined[len(stem) :]
        return self.codec.bare(glue + text)  # the seam merges: what follows is tokenized by itself


def space_of(encoding: Encoding, position: int) -> str:
    """The white space with which a token begins, where its tokenizer counts it as the token's; of blanks alone none."""
    own = encoding.texts[0][encoding.start[position] : encoding.end[position]]
    return own[: len(own) - len(own.lstrip())] if own.strip() else ""
