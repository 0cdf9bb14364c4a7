"""Encoder-decoders: source and what is written so far lie on one axis; the target is written text."""

from __future__ import annotations

from dataclasses import replace

import torch

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Target
from raison.models.protocol import TargetSpec
from raison.models.runner.batching import streams_of_batch_piece
from raison.models.runner.output_format import Output
from raison.models.runner.runner import Runner
from raison.models.tasks.base import axis_of
from raison.models.tasks.continuation import AddedTokens, extended_encoding, with_tokens_behind
from raison.models.tasks.generation import GenerationTask

__all__ = ["Seq2SeqTask"]


class Seq2SeqTask(GenerationTask):
    """An encoder-decoder; without a target the whole text that it writes is explained."""

    name = "seq2seq"
    arguments = (("input_ids", "attention_mask"), ("decoder_input_ids", "decoder_attention_mask"))

    # -- the model --------------------------------------------------------------------------------------

    def hidden_states(self, output: Output) -> list[list[torch.Tensor]]:
        return [list(output.encoder_hidden_states), list(output.decoder_hidden_states)]

    def generation_inputs(self, encoding: Encoding) -> dict[str, torch.Tensor]:
        source, begun = streams_of_batch_piece(encoding)
        ids = torch.from_numpy(encoding.ids[source]).to(self.loaded.device)[None]
        prefix = torch.from_numpy(encoding.ids[begun]).to(self.loaded.device)[None]
        return {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "decoder_input_ids": prefix,
        }

    @property
    def start_id(self) -> int:
        """The token that every written text begins with."""
        found = self.generation_setting("decoder_start_token_id")
        if found is None:
            found = self.loaded.setting("decoder_start_token_id")
        return self.loaded.codec.pad_id if found is None else int(found)

    @property
    def prefix_ids(self) -> list[int]:
        """What stands before all that the model decides: its start, and the first token where its settings force one
        (BART's `<s>`, the language of mBART and NLLB)."""
        forced = self.generation_setting("forced_bos_token_id")
        return [self.start_id] if forced is None else [self.start_id, int(forced)]

    def generation_setting(self, name: str) -> int | None:
        """A token's id in the model's settings for writing, where it has some."""
        settings = self.loaded.hf.generation_config
        found: int | None = getattr(settings, name, None)
        return found

    # -- texts and targets ------------------------------------------------------------------------------

    def encode(self, example: Example, *, truncate: bool) -> Encoding:
        if example.pair is not None:
            raise InputError(
                "A translation has one source text: pass the wanted translation as target=, not as a pair."
            )
        source = axis_of(self.loaded, example, ("source",), truncate=truncate)
        # P0's rule: the source's end and the start of the target are ordinary tokens that a search may drop (in a
        # prompt with slots only these may be)
        fixed = source.fixed if example.slots else source.fixed & (source.start >= 0)
        source = replace(
            source,
            segments=("source", "prefix"),
            texts=(*source.texts, ""),
            fixed=fixed,
            types=None,
        )
        ids = self.prefix_ids
        prefix = AddedTokens(
            ids=ids,
            tokens=[self.loaded.codec.name(token) for token in ids],
            starts=[-1] * len(ids),
            ends=[-1] * len(ids),
            segment=1,
            first_position=0,
            fixed=bool(example.slots),
        )
        return with_tokens_behind(source, prefix)

    def first_position(self, encoding: Encoding) -> int:
        return int((encoding.segment <= 1).sum())

    def resolve_targets(
        self, runner: Runner, encoding: Encoding, target_spec: TargetSpec
    ) -> list[tuple[Encoding, Target]]:
        if target_spec.target is not None and not target_spec.inside:
            return self.targets_in_text(encoding, target_spec)

        encoding = extended_encoding(encoding, self.write(runner, encoding), self.loaded.codec)
        first = self.first_position(encoding)
        if target_spec.target is None:
            target = self.written_target(encoding, range(first, len(encoding)))
            return [(encoding, self.finished(encoding, target, target_spec))]
        # numbers count the written tokens
        if target_spec.number is not None and target_spec.number >= 0:
            target_spec = replace(target_spec, target=target_spec.number + first)
        if isinstance(target_spec.target, slice):
            start, stop, _ = target_spec.target.indices(len(encoding) - first)
            target_spec = replace(target_spec, target=slice(start + first, stop + first))
        return self.targets_in_text(encoding, target_spec)

    def pieces_of(self, encoding: Encoding, position: int, text: str) -> list[int]:
        ids = self.loaded.codec.target(text)
        if not ids:
            raise InputError("The tokenizer makes no tokens of this target: name some words.")
        return ids
