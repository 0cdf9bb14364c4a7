"""Causal language models: the target is the next token, any token of the text, or a continuation."""

from __future__ import annotations

from raison.errors import InputError
from raison.models.axis import axis_of
from raison.models.base import NO_WISH, Wish
from raison.models.generation import Writer
from raison.types import Encoding, Example, Target

__all__ = ["CausalLM"]


class CausalLM(Writer):
    """A decoder; without a wish the next token is explained."""

    task = "causal"

    def encode_one(self, example: Example, *, truncate: bool) -> Encoding:
        text = example.text if example.pair is None else f"{example.text}\n{example.pair}"
        joined = Example.from_dict({**example.to_dict(), "text": text, "pair": None})
        return axis_of(self, joined, ("text",), truncate=truncate, from_start=True)

    def first_position(self, encoding: Encoding) -> int:
        return 1

    def aim(self, encoding: Encoding, wish: Wish = NO_WISH) -> list[tuple[Encoding, Target]]:
        if wish.target is not None:
            return self.aimed_at(encoding, wish)
        return [(encoding, self.finished(encoding, self.said(encoding, wish), wish))]

    def pieces_of(self, encoding: Encoding, text: str) -> list[int]:
        """Token ids of a continuation: what the tokenizer adds when it stands behind the text."""
        if not text:
            raise InputError("The target is empty: name a word or text that could follow.")
        before = encoding.texts[-1]
        glue = "" if not before or before[-1].isspace() or text[0].isspace() else " "
        joined = self.codec(before + glue + text).ids.tolist()
        stem = [int(i) for i in encoding.ids]
        if joined[: len(stem)] == stem and len(joined) > len(stem):
            return joined[len(stem) :]
        return [int(i) for i in self.codec(glue + text, special=False).ids]  # the seam merges: tokenize apart

    def contrast_ids(self, encoding: Encoding, target: Target, text: str) -> list[int]:
        """Token ids of the other outcome, read as a continuation of what stands before the target."""
        leading = self.codec.name(target.ids[0])[:1].isspace() and not text[:1].isspace()
        ids = [int(i) for i in self.codec((" " if leading else "") + text, special=False).ids]
        return ids[: len(target.ids)] if len(target.ids) == 1 else ids
