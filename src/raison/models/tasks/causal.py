"""Causal language models: the target is the next token, any token of the text, or a continuation."""

from __future__ import annotations

from dataclasses import replace

import torch

from raison.core.records import Encoding, Example, Target
from raison.core.text_splitting import kind_of_character
from raison.models.protocol import TargetSpec
from raison.models.runner.runner import Runner
from raison.models.tasks.base import axis_of
from raison.models.tasks.generation import GenerationTask

__all__ = ["CausalTask"]


class CausalTask(GenerationTask):
    """A decoder; without a target the next token is explained."""

    name = "causal"

    def encode(self, example: Example, *, truncate: bool) -> Encoding:
        if example.pair is not None:
            text = f"{example.text}\n{example.pair}"
            example = replace(example, text=text, pair=None)
        return axis_of(self.loaded, example, ("text",), truncate=truncate, from_start=True)

    def first_position(self, encoding: Encoding) -> int:
        return 1

    def generation_inputs(self, encoding: Encoding) -> dict[str, torch.Tensor]:
        ids = torch.from_numpy(encoding.ids.copy()).to(self.loaded.device)[None]
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def resolve_targets(
        self, runner: Runner, encoding: Encoding, target_spec: TargetSpec
    ) -> list[tuple[Encoding, Target]]:
        if target_spec.target is not None:
            return self.targets_in_text(encoding, target_spec)
        predicted = self.predicted_target(runner, encoding, target_spec)
        return [(encoding, self.finished(encoding, predicted, target_spec))]

    def pieces_of(self, encoding: Encoding, position: int, text: str) -> list[int]:
        """What the tokenizer adds when the text stands behind what comes before.

        Two words get a space between them; before punctuation, inside brackets and between Han characters nothing
        is added, and a space that the user typed counts.
        """
        codec = self.loaded.codec
        whole = encoding.texts[0]
        before, between = whole, ""
        if position < len(encoding) and encoding.segment[position] == 0:
            begin = encoding.start[position]
            before = whole[:begin].rstrip()
            between = whole[len(before) : begin] + space_before_token(encoding, position)
        if (
            not between
            and before
            and kind_of_character(before[-1]) == kind_of_character(text[0]) == "letter"
        ):
            between = " "

        stem: list[int] = codec(before).ids.tolist() if before else []
        joined: list[int] = codec(before + between + text).ids.tolist()
        size = len(stem)
        if joined[:size] == stem and len(joined) > size:
            return joined[size:]
        return codec.bare(between + text)  # the seam merges: what follows is tokenized by itself


def space_before_token(encoding: Encoding, position: int) -> str:
    """The white space with which a token begins, where its tokenizer counts it as the token's; of blanks alone none."""
    own = encoding.texts[0][encoding.start[position] : encoding.end[position]]
    if not own.strip():
        return ""
    return own[: len(own) - len(own.lstrip())]
