"""Encoder-decoders: source and what is written so far lie on one axis; the target is written text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Target
from raison.models.axis import axis_of
from raison.models.protocol import PREDICTED, TargetSpec
from raison.models.runner.batching import streams_of
from raison.models.tasks.generation import Writer, extended

__all__ = ["Seq2Seq"]


class Seq2Seq(Writer):
    """An encoder-decoder; without a target the whole text that it writes is explained."""

    task = "seq2seq"

    def encode_one(self, example: Example, *, truncate: bool) -> Encoding:
        if example.pair is not None:
            raise InputError(
                "A translation has one source text: pass the wanted translation as target=, not as a pair."
            )
        source = axis_of(self, example, ("source",), truncate=truncate)
        begun = self.begun
        data = source.to_dict()
        fixed = source.fixed if example.slots else source.fixed & (source.start >= 0)
        # P0's rule: the source's end and the start of the target are ordinary tokens that a search may drop (in a
        # prompt with slots only these may be)
        data |= {
            "ids": [*data["ids"], *begun],
            "tokens": [*data["tokens"], *(self.codec.name(i) for i in begun)],
            "segments": ["source", "prefix"],
            "texts": [*data["texts"], ""],
            "segment": [*data["segment"], *(1 for _ in begun)],
            "start": [*data["start"], *(-1 for _ in begun)],
            "end": [*data["end"], *(-1 for _ in begun)],
            "positions": [*data["positions"], *range(len(begun))],
            "fixed": [*fixed.tolist(), *(bool(example.slots) for _ in begun)],
            "types": None,
        }
        return Encoding.from_dict(data)

    @property
    def start_id(self) -> int:
        config = self.hf.config
        for source in (getattr(self.hf, "generation_config", None), config):
            found = getattr(source, "decoder_start_token_id", None)
            if found is not None:
                return int(found)
        return self.codec.pad_id

    @property
    def begun(self) -> list[int]:
        """What stands before all that the model decides: its start, and the first token where its settings force one
        (BART's `<s>`, the language of mBART and NLLB)."""
        forced = getattr(getattr(self.hf, "generation_config", None), "forced_bos_token_id", None)
        return [self.start_id] if forced is None else [self.start_id, int(forced)]

    def argument_names(self, stream: int) -> tuple[str, str]:
        return ("input_ids", "attention_mask") if stream == 0 else ("decoder_input_ids", "decoder_attention_mask")

    def first_position(self, encoding: Encoding) -> int:
        return int((encoding.segment <= 1).sum())

    def resolve_targets(self, encoding: Encoding, target_spec: TargetSpec = PREDICTED) -> list[tuple[Encoding, Target]]:
        if target_spec.target is not None and not target_spec.inside:
            return self.aimed_at(encoding, target_spec)
        encoding = extended(encoding, self.write(encoding), self.codec)
        first = self.first_position(encoding)
        if target_spec.target is None:
            positions = tuple(range(first, len(encoding)))
            ids = tuple(int(encoding.ids[p]) for p in positions)
            target = Target("token" if len(ids) == 1 else "text", ids, positions, self.codec.text(ids), "log_prob")
            return [(encoding, self.finished(encoding, target, target_spec))]
        if target_spec.number is not None and target_spec.number >= 0:  # a number counts the written tokens
            target_spec = replace(target_spec, target=target_spec.number + first)
        if isinstance(target_spec.target, slice):
            start, stop, _ = target_spec.target.indices(len(encoding) - first)
            target_spec = replace(target_spec, target=slice(start + first, stop + first))
        return self.aimed_at(encoding, target_spec)

    def pieces_of(self, encoding: Encoding, position: int, text: str) -> list[int]:
        ids = self.codec.target(text)
        if not ids:
            raise InputError("The tokenizer makes no tokens of this target: name some words.")
        return ids

    def started(self, encoding: Encoding) -> dict[str, torch.Tensor]:
        source, begun = (torch.from_numpy(encoding.ids[at]).to(self.device)[None] for at in streams_of(encoding))
        return {"input_ids": source, "attention_mask": torch.ones_like(source), "decoder_input_ids": begun}

    def hidden_of(self, output: Any) -> list[list[torch.Tensor]]:
        return [list(output.encoder_hidden_states), list(output.decoder_hidden_states)]
