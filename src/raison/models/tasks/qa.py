"""Extractive question answering: the target is the span from start to end, read at two rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.records import Encoding, Example, Target
from raison.models.axis import axis_of
from raison.models.protocol import PREDICTED, Prediction, TargetSpec
from raison.models.runner.adapter import Adapter
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk, Piece

__all__ = ["QuestionAnswerer"]

LONGEST = 30  # tokens of a predicted answer


class QuestionAnswerer(Adapter):
    """A span model: start and end are two columns, each decided among the tokens of the context that are there."""

    task = "qa"

    def encode_one(self, example: Example, *, truncate: bool) -> Encoding:
        if example.pair is None:
            raise InputError("A question needs a context: pass (question, context), or --question and --context.")
        encoding = axis_of(self, example, ("question", "context"), truncate=truncate)
        if not len(self.context(encoding)):  # characters that the tokenizer drops, or a question that took all the room
            raise InputError("The model reads no word of the context, so it can't answer: give a context with words.")
        return encoding

    def target_of(self, encoding: Encoding, start: int, end: int, output: str | None = None) -> Target:
        text = encoding.texts[1][encoding.start[start] : encoding.end[end]]
        return Target("span", (start, end), (start, end), text, output or "logit")

    def context(self, encoding: Encoding) -> np.ndarray:
        """Axis positions of the context's tokens."""
        return np.flatnonzero((encoding.segment == 1) & (encoding.start >= 0))

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        answers = []
        for encoding, logits in zip(encodings, self.logits(encodings, [None] * len(encodings)), strict=True):
            inside = self.context(encoding)
            log_prob = logits[:, inside].log_softmax(-1)  # [2 c]
            pairs = log_prob[0][:, None] + log_prob[1][None, :]
            pairs = pairs.masked_fill(~torch.ones_like(pairs).bool().triu().tril(LONGEST - 1), -torch.inf)
            best = pairs.flatten().topk(min(5, int(torch.isfinite(pairs).sum())))
            spans = [(int(inside[i // len(inside)]), int(inside[i % len(inside)])) for i in best.indices.tolist()]
            found = [self.target_of(encoding, a, b) for a, b in spans]
            shares = best.values.exp().tolist()
            top = tuple((target.text, share) for target, share in zip(found, shares, strict=True))
            answers.append(Prediction(found[0], shares[0], top, tuple(target.ids for target in found)))
        return answers

    def resolve_targets(self, encoding: Encoding, target_spec: TargetSpec = PREDICTED) -> list[tuple[Encoding, Target]]:
        if target_spec.contrast is not None:
            raise InputError("A contrast of answer spans is not defined: explain each span by itself.")
        if target_spec.target is None:
            start, end = self.said(encoding, target_spec).positions
            return [(encoding, self.target_of(encoding, start, end, target_spec.output))]
        text = str(target_spec.target)
        place = encoding.texts[1].find(text)
        if place < 0 or not text:
            raise InputError(f"The answer {text!r} does not stand in the context: give a part of it, letter by letter.")
        inside = self.context(encoding)
        touched = inside[(encoding.end[inside] > place) & (encoding.start[inside] < place + len(text))]
        if len(touched) == 0:
            raise InputError(f"The answer {text!r} was cut off with the end of the context: shorten the context.")
        return [(encoding, self.target_of(encoding, int(touched[0]), int(touched[-1]), target_spec.output))]

    def unpadded(self, logits: torch.Tensor, real: slice) -> torch.Tensor:
        return logits[:, real]

    def answers(self, part: Piece) -> np.ndarray:
        """[n L] where an answer can stand: the question and special tokens are none."""
        return np.isin(part.index[0], self.context(part.encoding))

    def columns(self, output: Any, chunk: Chunk) -> Columns:
        logits = torch.stack([output.start_logits, output.end_logits], dim=1)  # [b 2 t]
        if chunk.parts[0].target is None:
            return Columns(logits, torch.zeros(logits.shape[:2], dtype=torch.long))
        there = chunk.fill(0, [part.visible[0] & self.answers(part) for part in chunk.parts], False)
        absent = ~torch.from_numpy(there).to(logits.device)
        logits = logits.masked_fill(absent[:, None, :], torch.finfo(logits.dtype).min)
        return Columns(logits, self.rows_of(chunk))  # type: ignore[arg-type]
